import { useSignal } from "@preact/signals";
import type { Reason } from "@tensorviz/contracts";
import { count } from "../format/numbers";
import { visible } from "../format/text";
import { callName, position, statePath, valueOf, type CaptureModel } from "../model/capture";
import { coverageText, explain, terminationText } from "../model/reasons";
import { useStore } from "../state/store";
import { Fact, Facts, Go } from "./bits";
import { Icon } from "./icons";
import { Log, LogButton } from "./Log";
import { OperationLink, ProducerLink } from "./TensorFacts";

/** Reasons that say no more than how the run ended. */
const SAID_BY_THE_END: ReadonlySet<string> = new Set(["run_failed", "timed_out", "cancelled"]);

/** Says of a partial capture, before anything else, that it is partial, and why. */
export function PartialBanner({ model }: { model: CaptureModel }) {
  const { view, session, panel } = useStore();
  const log = useSignal(false);
  const { snapshot, culprit } = model;
  const logged = session.ledger.value.attempts.some(({ id }) => id === snapshot.attempt);
  const lead = snapshot.reasons[0];
  const { kind } = snapshot.termination;
  const ended = kind !== "returned";
  const [tone, icon] = kind === "cancelled" ? (["plain", "stop"] as const) : ended ? (["bad", "fail"] as const) : (["warn", "warn"] as const);
  return (
    <section class={`banner ${tone}`} aria-label="This capture is partial">
      <Icon name={icon} />
      <div class="banner-text">
        <p>
          <strong>{ended ? terminationText(snapshot) : "This capture is partial."}</strong>{" "}
          {lead && !(ended && SAID_BY_THE_END.has(lead.code)) && `${explain(lead.code).happened} `}
          {lead && explain(lead.code).missing}
        </p>
        <p class="banner-more">
          {coverageText(snapshot.coverage.operations, "operation")}.{" "}
          {lead && explain(lead.code).todo}
        </p>
        {log.value && <Log id={snapshot.attempt} />}
      </div>
      <div class="banner-actions">
        {culprit !== null && (
          <button type="button" class="button" onClick={() => view.reveal(culprit)}>
            Show the {snapshot.operations[culprit]?.status === "failed" ? "failing" : "last"} operation
          </button>
        )}
        {logged && <LogButton open={log.value} onToggle={() => (log.value = !log.value)} />}
        <button type="button" class="button" onClick={() => (panel.value = "details")}>
          {snapshot.reasons.length > 1 ? `All ${snapshot.reasons.length} reasons` : "Details"}
        </button>
      </div>
    </section>
  );
}

export function ReasonList({ model }: { model: CaptureModel }) {
  return (
    <ul class="reasons">
      {model.snapshot.reasons.map((reason, i) => (
        <ReasonRow key={i} model={model} reason={reason} />
      ))}
    </ul>
  );
}

function ReasonRow({ model, reason }: { model: CaptureModel; reason: Reason }) {
  const { happened, missing, todo } = explain(reason.code);
  return (
    <li class="reason">
      <p>
        <strong>{happened}</strong>
        {reason.count > 1 && <span class="muted"> {count(reason.count)} times.</span>}
      </p>
      <Facts>
        <Fact name="Missing">{missing}</Fact>
        <Fact name="To do">{todo}</Fact>
        {reason.subject !== null && (
          <Fact name={reason.count > 1 ? "First at" : "At"}>
            <Subject model={model} id={reason.subject} />
          </Fact>
        )}
      </Facts>
      {reason.detail !== null && <p class="mono reason-detail">{visible(reason.detail)}</p>}
    </li>
  );
}

/** The record that a reason names, as a link where there is a place to go to. */
function Subject({ model, id }: { model: CaptureModel; id: string }) {
  const { view, panel } = useStore();
  const index = position(id);
  switch (id[0]) {
    case "o":
      return <span onClick={() => (panel.value = null)}><OperationLink model={model} index={index} /></span>;
    case "c":
      return (
        <Go
          onGo={() => {
            panel.value = null;
            view.select({ call: index, op: null });
          }}
        >
          {callName(model, index)}
        </Go>
      );
    case "p":
      return <span>{visible(statePath(model, id))}</span>;
    default: {
      const value = valueOf(model, id);
      return value ? <span>{id}, <ProducerLink model={model} value={value} /></span> : <span>{id}</span>;
    }
  }
}
