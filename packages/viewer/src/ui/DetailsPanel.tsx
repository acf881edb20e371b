import type { CaptureSnapshot, EventCoverage } from "@tensorviz/contracts";
import { bytes, clock, count } from "../format/numbers";
import { visible } from "../format/text";
import { position, type CaptureModel } from "../model/capture";
import { coverageText, explain, normalizationText, terminationText } from "../model/reasons";
import { useStore } from "../state/store";
import { Badge, Copy, Fact, Facts, Section } from "./bits";
import { Dialog } from "./Dialog";
import { ReasonList } from "./Reasons";

/** Everything that is true of the capture as a whole. */
export function DetailsPanel() {
  const { view, session, panel } = useStore();
  const model = view.model.value;
  if (!model) return null;
  const summary = session.displayed.value;
  return (
    <Dialog title="Capture details" onClose={() => (panel.value = null)}>
      <p class="muted">
        {model.snapshot.id} <Copy text={model.snapshot.id} label="Copy the capture's name" />
        {summary && ` · ${bytes(summary.bytes)} · ${clock(summary.created)}`}
      </p>
      <RunFacts model={model} />
    </Dialog>
  );
}

export function RunFacts({ model }: { model: CaptureModel }) {
  const { snapshot } = model;
  return (
    <>
      <Outcome model={model} />
      <Counts snapshot={snapshot} />
      <ExecutionFacts snapshot={snapshot} />
      <EnvironmentFacts snapshot={snapshot} />
      <SourceFacts snapshot={snapshot} />
      <LimitFacts snapshot={snapshot} />
      {snapshot.normalizations.length > 0 && (
        <Section title="How it was written down">
          <ul class="plain-list spaced">
            {snapshot.normalizations.map((code) => (
              <li key={code}>{normalizationText(code)}</li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function Outcome({ model }: { model: CaptureModel }) {
  const { snapshot } = model;
  return (
    <Section title="Outcome">
      <p>
        {snapshot.status === "complete" ? <Badge tone="good">complete</Badge> : <Badge tone="warn">partial</Badge>}{" "}
        {terminationText(snapshot)}
      </p>
      {snapshot.valuesUnavailable && (
        <p class="muted">The tensors were fake: shapes, dtypes and identities are exact, and numbers never existed.</p>
      )}
      {snapshot.reasons.length > 0 && <ReasonList model={model} />}
    </Section>
  );
}

function Counts({ snapshot }: { snapshot: CaptureSnapshot }) {
  const { coverage } = snapshot;
  const states = new Map<string, number>();
  for (const { state } of coverage.modules) states.set(state, (states.get(state) ?? 0) + 1);
  return (
    <Section title="Coverage of what ran">
      <Facts>
        <Counted name="Operations" coverage={coverage.operations} noun="operation" />
        <Counted name="Module calls" coverage={coverage.invocations} noun="call" />
        <Counted name="Tensor values" coverage={coverage.values} noun="value" />
        <Fact name="Modules">
          {[...states].map(([state, number]) => `${count(number)} ${state.replaceAll("_", " ")}`).join(", ") || "none"}
        </Fact>
      </Facts>
    </Section>
  );
}

function Counted({ name, coverage, noun }: { name: string; coverage: EventCoverage; noun: string }) {
  return (
    <Fact name={name}>
      {coverageText(coverage, noun)}
      {coverage.reason !== null && <span class="muted">. {explain(coverage.reason).happened}</span>}
    </Fact>
  );
}

const SUPPLIED: Record<CaptureSnapshot["execution"]["inputs"]["kind"], string> = {
  function: "by the function",
  convention: "by the file's",
  caller: "by the caller",
  none: "none were needed",
};

function ExecutionFacts({ snapshot }: { snapshot: CaptureSnapshot }) {
  const { execution, setup } = snapshot;
  const file = execution.file === null ? null : snapshot.source.files[position(execution.file)];
  return (
    <Section title="Execution">
      <Facts>
        <Fact name="File">{file ? visible(file.path) : <span class="muted">recorded in the caller's own process</span>}</Fact>
        <Fact name="Target">
          {visible(execution.target)} <span class="muted">({execution.targetKind})</span>
        </Fact>
        <Fact name="Inputs">
          {SUPPLIED[execution.inputs.kind]} {execution.inputs.name === null ? "" : visible(execution.inputs.name)}
        </Fact>
        <Fact name="Mode">{execution.mode === "as_is" ? "as the model was" : execution.mode}</Fact>
        <Fact name="Tensors">{execution.fake ? "fake (shapes without numbers)" : "real"}</Fact>
        <Fact name="Gradients">
          {execution.gradEnabled ? "enabled" : "disabled"}
          {execution.inferenceMode && ", in inference mode"}
        </Fact>
        <Fact name="Plan">
          {setup.kind === "planned" ? <Digest text={setup.planDigest} /> : <span class="muted">none: recorded in process</span>}
        </Fact>
        <Fact name="Attempt">{snapshot.attempt}</Fact>
      </Facts>
    </Section>
  );
}

function EnvironmentFacts({ snapshot }: { snapshot: CaptureSnapshot }) {
  const { environment } = snapshot;
  return (
    <Section title="Environment">
      <Facts>
        <Fact name="torch">{visible(environment.torch)}</Fact>
        <Fact name="Python">
          {visible(environment.python)} <span class="muted">({visible(environment.implementation)})</span>
        </Fact>
        <Fact name="Platform">{visible(environment.platform)}</Fact>
        <Fact name="Threads">{count(environment.threads)}</Fact>
        {environment.sandbox.map(({ mechanism, state, reason }) => (
          <Fact key={mechanism} name={visible(mechanism)} title="A mechanism that confines the run">
            <Badge tone={state === "enforced" ? "good" : state === "degraded" ? "warn" : "plain"}>{state}</Badge>
            {reason !== null && <span class="muted"> {visible(reason)}</span>}
          </Fact>
        ))}
      </Facts>
    </Section>
  );
}

function SourceFacts({ snapshot }: { snapshot: CaptureSnapshot }) {
  const { source } = snapshot;
  return (
    <Section title="Source files cited" count={source.files.length}>
      <Facts>
        <Fact name="Digest" title="SHA-256 over the workspace's files among them">
          <Digest text={source.digest} />
        </Fact>
      </Facts>
      <ul class="files">
        {source.files.map((file) => (
          <li key={file.id}>
            <span class="mono">{visible(file.path)}</span>
            <span class="muted">
              {" "}
              {file.root} {file.digest === null ? "· could not be read" : <Digest text={file.digest} />}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Digest({ text }: { text: string }) {
  return (
    <span class="mono digest" title={text}>
      {text.slice(0, 12)}… <Copy text={text} label="Copy the digest" />
    </span>
  );
}

const LIMITS: readonly (readonly [keyof CaptureSnapshot["limits"], string])[] = [
  ["bytes", "Encoded size"],
  ["operations", "Operations"],
  ["invocations", "Module calls"],
  ["values", "Tensor values"],
  ["argumentDepth", "Argument depth"],
  ["argumentItems", "Argument items"],
  ["text", "Text length"],
  ["parameterReads", "Parameter reads"],
];

function LimitFacts({ snapshot }: { snapshot: CaptureSnapshot }) {
  return (
    <Section title="Limits of this capture">
      <Facts>
        {LIMITS.map(([key, name]) => {
          const limit = snapshot.limits[key];
          return limit === undefined ? null : (
            <Fact key={key} name={name}>
              {key === "bytes" ? bytes(limit) : count(limit)}
            </Fact>
          );
        })}
      </Facts>
    </Section>
  );
}
