import type { Diagnostic, Effect, Invocation, Operation } from "@tensorviz/contracts";
import { count } from "../format/numbers";
import { tensorText } from "../format/tensor";
import { visible } from "../format/text";
import { callName, className, definitionType, owner, place, position, rootCaller, RUN, valueOf, type CaptureModel } from "../model/capture";
import { argumentName } from "../model/effects";
import { causes, demands } from "../model/failure";
import { opaqueReason } from "../format/argument";
import { topArguments } from "../model/walk";
import { useStore } from "../state/store";
import { ArgumentTree, type Rooted } from "./ArgumentTree";
import { Copy, Fact, Facts, Go, Section, StatusBadge } from "./bits";
import { RunFacts } from "./DetailsPanel";
import { Icon } from "./icons";
import { Source } from "./Source";
import { OperationLink, ProducerLink, VersionText } from "./TensorFacts";

/** Everything that was recorded of what is selected. */
export function Inspector() {
  const { view } = useStore();
  const model = view.model.value as CaptureModel;
  const { call, op } = view.selection.value;
  return (
    <aside class="pane inspector" id="inspector" aria-label="Inspector" tabIndex={0}>
      {op !== null ? (
        <OperationView key={`${model.snapshot.id} o${op}`} model={model} index={op} />
      ) : call === RUN ? (
        <RunView model={model} />
      ) : (
        <CallView key={`${model.snapshot.id} c${call}`} model={model} call={call} />
      )}
    </aside>
  );
}

function OperationView({ model, index }: { model: CaptureModel; index: number }) {
  const { view } = useStore();
  const operation = model.snapshot.operations[index];
  if (!operation) return null;
  const call = owner(operation);
  const schema = model.schemas.get(operation.target);
  return (
    <>
      <header class="inspector-head">
        <p class="eyebrow">
          Operation #{count(index)} <StatusBadge status={operation.status} />
        </p>
        <h2 class="mono">{visible(operation.target)}</h2>
        <p class="where">
          in{" "}
          {call === RUN ? "the run, outside of every module call" : (
            <Go onGo={() => view.select({ call, op: index })} title="Show this call">
              {callName(model, call)}
            </Go>
          )}
        </p>
      </header>
      <Failure model={model} id={operation.diagnostic} status={operation.status} operation={operation} />
      <Source model={model} id={operation.location} call={call} />
      <Section title="Arguments" count={operation.args.length + operation.kwargs.length}>
        <ArgumentTree model={model} roots={argumentRoots(operation, schema?.names.args ?? [])} self={operation.id} />
        {operation.args.length + operation.kwargs.length === 0 && <p class="muted">none</p>}
      </Section>
      <Output model={model} call={operation} names={schema?.names.returns ?? []} />
      {operation.effects.length > 0 && (
        <Section title="Writes" count={operation.effects.length}>
          <ul class="effects">
            {operation.effects.map((effect, i) => (
              <EffectRow key={i} model={model} operation={operation} effect={effect} />
            ))}
          </ul>
        </Section>
      )}
      <Section title="Operator schema">
        {schema?.schema ? (
          <p class="schema mono">
            {visible(schema.schema)} <Copy text={schema.schema} label="Copy the schema" />
          </p>
        ) : (
          <p class="muted">A higher-order operator: it has no schema.</p>
        )}
      </Section>
    </>
  );
}

function argumentRoots(call: Operation | Invocation, names: readonly string[]): Rooted[] {
  return topArguments(call).map(({ name, path, argument }, i) => ({
    label: name ?? (names[i] ? names[i] : `${i}`),
    path,
    argument,
  }));
}

function Output({ model, call, names }: { model: CaptureModel; call: Operation | Invocation; names: readonly string[] }) {
  const label = names.length === 1 && names[0] ? names[0] : "result";
  return (
    <Section title="Output">
      {call.output === null ? (
        <p class="muted">{call.status === "completed" ? "none" : "none: it did not complete"}</p>
      ) : (
        <ArgumentTree model={model} roots={[{ label, path: ["output"], argument: call.output }]} self={call.id} />
      )}
    </Section>
  );
}

function EffectRow({ model, operation, effect }: { model: CaptureModel; operation: Operation; effect: Effect }) {
  const before = valueOf(model, effect.before);
  const after = effect.after.kind === "tensor" ? valueOf(model, effect.after.value) : undefined;
  return (
    <li class="effect">
      <p>
        <span class="arg-label">{argumentName(model, operation, effect.argument)}</span>
        {before && <span class="token tensor computed">{tensorText(before)}</span>}
        <span class="arg-kind">{effect.relation === "alias" ? "shares the memory that is written" : "written"}</span>
      </p>
      <p class="versions">
        <span title="Value before the write">{effect.before}{before && <Version value={before} />}</span>
        <Icon name="arrow" />
        {after ? (
          <span title="Value after the write">{after.id}<Version value={after} /></span>
        ) : (
          effect.after.kind === "opaque" && <span class="muted">{opaqueReason(effect.after)}</span>
        )}
      </p>
      {before && <p class="arg-under flush">before: <ProducerLink model={model} value={before} /></p>}
    </li>
  );
}

function Version({ value }: { value: { version: number | null; logicalVersion: number } }) {
  return (
    <span class="muted">
      {" "}
      version <VersionText version={value.version} />, observation {value.logicalVersion}
    </span>
  );
}

const DISPOSITION: Record<Diagnostic["disposition"], string> = {
  propagated: "It left the model and ended the run.",
  suppressed: "The program caught it and went on.",
  replaced: "The program raised another exception in its place.",
  control_flow: "Torch left the call early, as it does once a checkpoint has recomputed what it needs. Nothing failed.",
  unknown: "Whether the program caught it is not known.",
};

const TONE: Record<Diagnostic["disposition"], string> = {
  propagated: "bad",
  suppressed: "warn",
  replaced: "bad",
  control_flow: "",
  unknown: "bad",
};

const exceptionName = ({ exception }: Diagnostic): string => visible(exception.replace(/^builtins\./, ""));

/** What was raised, what the operands violate, and what became of it. `operation` is the one that failed, if one did. */
function Failure(props: { model: CaptureModel; id: string | null; status: Invocation["status"]; operation?: Operation }) {
  const { model, id, status, operation } = props;
  const found = id === null ? undefined : model.snapshot.diagnostics[position(id)];
  if (!found) {
    return status === "in_flight" ? <p class="callout warn">This was running when the run ended, and never came back.</p> : null;
  }
  const violated = operation ? demands(model, operation) : [];
  return (
    <div class={`callout ${TONE[found.disposition]}`}>
      <p><strong class="mono">{exceptionName(found)}</strong></p>
      {violated.length > 0 && (
        <ul class="violated">
          {violated.map((text) => <li key={text} class="mono">{text}</li>)}
        </ul>
      )}
      <p>{DISPOSITION[found.disposition]}</p>
      {causes(model, found).map((cause) => (
        <p key={cause.id}>
          It took the place of <span class="mono">{exceptionName(cause)}</span>
          {cause.operation !== null && <> from <OperationLink model={model} index={position(cause.operation)} /></>}.
        </p>
      ))}
      <p class="muted">The message is in the attempt's log: exception texts are not kept as facts.</p>
    </div>
  );
}

function CallView({ model, call }: { model: CaptureModel; call: number }) {
  const record = model.snapshot.invocations[call];
  if (!record) return null;
  return (
    <>
      <header class="inspector-head">
        <p class="eyebrow">
          Module call {record.id} <StatusBadge status={record.status} />
        </p>
        <h2>{callName(model, call)}</h2>
        <p class="where mono">{visible(definitionType(model.snapshot, record.module))}</p>
      </header>
      <Failure model={model} id={record.diagnostic} status={record.status} />
      <Section title="Arguments" count={record.args.length + record.kwargs.length}>
        <ArgumentTree model={model} roots={argumentRoots(record, [])} self={record.id} />
      </Section>
      <Output model={model} call={record} names={[]} />
      <ModuleFacts model={model} record={record} call={call} />
      <Source
        model={model}
        id={record.location}
        call={record.parent === null ? RUN : position(record.parent)}
        unknown={record.parent === null ? rootCaller(model.snapshot) : undefined}
      />
    </>
  );
}

function ModuleFacts({ model, record, call }: { model: CaptureModel; record: Invocation; call: number }) {
  const module = model.snapshot.modules[position(record.module)];
  if (!module) return null;
  const definition = model.snapshot.definitions[position(module.definition)];
  const forward = place(model, definition?.location ?? null);
  return (
    <Section title="Module">
      <Facts>
        <Fact name="Class">{visible(definition?.type ?? className(model.snapshot, record.module))}</Fact>
        <Fact name="Registered as">
          {module.paths.length === 0 ? (
            <span class="muted">no root registers it</span>
          ) : (
            <ul class="plain-list">
              {module.paths.map(({ root, path }) => (
                <li key={`${root}/${path}`}>{path === "" ? "the root itself" : visible(path)}</li>
              ))}
            </ul>
          )}
        </Fact>
        <Fact name="Instance">{module.id}</Fact>
        <Fact name="Mode">{module.training ? "training" : "evaluation"}</Fact>
        <Fact name="Parameters">
          {record.parameterCount === undefined ? `not counted${record.parameterCountUnavailable ? `: ${record.parameterCountUnavailable.replaceAll("_", " ")}` : ""}` : count(record.parameterCount)}
        </Fact>
        <Fact name="Calls">{`${model.occurrence[call]} of ${model.occurrences[call]}`}</Fact>
        <Fact name="Events" title="Numbers in the one order of all events">
          entered at {count(record.entry)}, {record.exit === null ? "never left" : `left at ${count(record.exit)}`}
        </Fact>
        {forward && (
          <Fact name="forward">
            <span title={forward.full}>{forward.text}</span>
          </Fact>
        )}
      </Facts>
    </Section>
  );
}

function RunView({ model }: { model: CaptureModel }) {
  return (
    <>
      <header class="inspector-head">
        <p class="eyebrow">Capture</p>
        <h2>{visible(model.snapshot.execution.target)}</h2>
      </header>
      <RunFacts model={model} />
    </>
  );
}
