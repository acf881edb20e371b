import { inputTokens, outputTokens } from "../format/argument";
import { brief, count, plural } from "../format/numbers";
import { visible } from "../format/text";
import { ancestors, callsInside, className, definitionType, modelName, place, RUN, type CaptureModel } from "../model/capture";
import { terminationText } from "../model/reasons";
import { useStore } from "../state/store";
import { Go, StatusBadge, Tokens, tokensTitle } from "./bits";
import { Icon } from "./icons";

/** What was called, where it is, what went in and what came out. */
export function CallHeader() {
  const { view } = useStore();
  const model = view.model.value as CaptureModel;
  const { call } = view.selection.value;
  return (
    <div class="call-header">
      <Breadcrumb model={model} call={call} />
      {call === RUN ? <RunFacts model={model} /> : <CallFacts model={model} call={call} />}
    </div>
  );
}

function Breadcrumb({ model, call }: { model: CaptureModel; call: number }) {
  const { view } = useStore();
  const above = ancestors(model, call);
  return (
    <ol class="breadcrumb" aria-label="Calls around this one">
      {model.hasRun && call !== RUN && (
        <li>
          <Go onGo={() => view.select({ call: RUN, op: null })}>Run</Go>
        </li>
      )}
      {above.map((outer) => (
        <li key={outer}>
          <Go onGo={() => view.select({ call: outer, op: null })}>{visible(model.labels[outer] ?? "")}</Go>
        </li>
      ))}
      {above.length === 0 && !(model.hasRun && call !== RUN) && <li class="muted">{call === RUN ? "Whole run" : "Root call"}</li>}
    </ol>
  );
}

function RunFacts({ model }: { model: CaptureModel }) {
  const { snapshot, roots, outside } = model;
  return (
    <>
      <h2 class="call-title">
        Run <span class="call-type">{modelName(model)}</span>
      </h2>
      <p class="call-line">
        {terminationText(snapshot)} {plural(roots.length, "root call")}, {plural(outside.length, "operation")} outside of every call.
      </p>
    </>
  );
}

function CallFacts({ model, call }: { model: CaptureModel; call: number }) {
  const { snapshot } = model;
  const record = snapshot.invocations[call];
  if (!record) return null;
  const inputs = inputTokens(model, record);
  const outputs = outputTokens(model, record.output);
  const label = visible(model.labels[call] ?? "");
  const type = visible(className(snapshot, record.module));
  const of = model.occurrences[call] ?? 1;
  const source = place(model, record.location);
  return (
    <>
      <h2 class="call-title">
        <span title={visible(model.paths[call] ?? "")}>{label}</span>
        {label !== type && (
          <span class="call-type" title={visible(definitionType(snapshot, record.module))}>
            {type}
          </span>
        )}
        {of > 1 && <span class="call-nth">call {model.occurrence[call]} of {of}</span>}
        <StatusBadge status={record.status} />
      </h2>
      <p class="call-line flow" title={`${tokensTitle(inputs)}  →  ${tokensTitle(outputs)}`}>
        <Tokens tokens={inputs} />
        <Icon name="arrow" />
        {outputs.length > 0 ? <Tokens tokens={outputs} /> : <span class="muted">nothing returned</span>}
      </p>
      <p class="call-line facts-line">
        <Parameters total={record.parameterCount} missing={record.parameterCountUnavailable} />
        <span>{plural(model.below[call] ?? 0, "operation")}</span>
        {callsInside(model, call) > 0 && <span>{plural(callsInside(model, call), "nested call")}</span>}
        {source && <span title={source.full}>called from {source.text}</span>}
      </p>
    </>
  );
}

function Parameters({ total, missing }: { total: number | undefined; missing: string | undefined }) {
  if (total !== undefined) return <span title={`${count(total)} parameters, each shared one counted once`}>{brief(total)} parameters</span>;
  if (missing === undefined) return null;
  const why = missing === "read_limit" ? "the capture's budget for reading parameters was used up" : "the module's metadata could not be read";
  return <span class="muted" title={`Not counted: ${why}`}>parameters unknown</span>;
}
