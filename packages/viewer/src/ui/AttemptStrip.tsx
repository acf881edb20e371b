import { useSignal } from "@preact/signals";
import type { RunAttempt } from "@tensorviz/contracts";
import { useEffect } from "preact/hooks";
import { duration, plural } from "../format/numbers";
import { fileName, visible, visibleLines } from "../format/text";
import { isRunning, STAGES } from "../state/ledger";
import { useStore } from "../state/store";
import { IconButton } from "./bits";
import { Icon } from "./icons";
import { Log, LogButton } from "./Log";
import { ProblemText } from "./ProblemText";

const STEPS = STAGES.slice(0, -1);

const STAGE_TEXT: Record<RunAttempt["stage"], string> = {
  queued: "Waiting for a free worker",
  starting: "Starting the worker",
  importing: "Importing the file",
  preparing: "Making the model and its inputs",
  running: "Running the model",
  finishing: "Writing the capture",
  validating: "Checking the capture",
  ended: "Ended",
};

/** The attempt that runs, or the one that left no capture. */
export function AttemptStrip({ attempt }: { attempt: RunAttempt }) {
  const log = useSignal(false);
  const running = isRunning(attempt);
  const cancelled = attempt.outcome === "cancelled";
  return (
    <section class={`banner attempt ${running ? "running" : cancelled ? "plain" : "bad"}`} aria-label="Latest run" role={running || cancelled ? undefined : "alert"}>
      {running ? <span class="spinner" aria-hidden="true" /> : <Icon name={cancelled ? "stop" : "fail"} />}
      <div class="banner-text">
        {running ? <Progress attempt={attempt} /> : <Ended attempt={attempt} />}
        {log.value && <Log id={attempt.id} />}
      </div>
      <Actions attempt={attempt} running={running} log={log.value} onLog={() => (log.value = !log.value)} />
    </section>
  );
}

function what({ request }: RunAttempt): string {
  return `${visible(fileName(request.file))}${request.target ? `:${visible(request.target)}` : ""}`;
}

function Progress({ attempt }: { attempt: RunAttempt }) {
  const now = useNow();
  const at = STAGES.indexOf(attempt.stage);
  return (
    <>
      <p>
        <strong title={visible(attempt.request.file)}>Capturing {what(attempt)}</strong>{" "}
        <span role="status">{STAGE_TEXT[attempt.stage]}</span>
      </p>
      <p class="banner-more progress-line">
        <span class="stages" role="img" aria-label={`Stage ${at + 1} of ${STEPS.length}: ${attempt.stage}`}>
          {STEPS.map((stage, i) => (
            <i key={stage} class={i < at ? "done" : i === at ? "now" : ""} title={stage} />
          ))}
        </span>
        <span>{plural(attempt.operations, "operation")}</span>
        <span class="elapsed">{duration(now - attempt.started)}</span>
      </p>
    </>
  );
}

function useNow(): number {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => (now.value = Date.now()), 200);
    return () => clearInterval(timer);
  }, [now]);
  return now.value;
}

const OUTCOME: Record<Exclude<RunAttempt["outcome"], null>, string> = {
  complete: "Captured",
  partial: "Captured in part",
  refused: "Nothing was run",
  failed: "No capture came of it",
  cancelled: "Cancelled",
  timed_out: "Stopped at the deadline",
};

function Ended({ attempt }: { attempt: RunAttempt }) {
  const took = attempt.ended === null ? "" : ` after ${duration(attempt.ended - attempt.started)}`;
  return (
    <>
      <p class="eyebrow">
        {what(attempt)} · {attempt.outcome ? OUTCOME[attempt.outcome] : ""}
        {attempt.outcome === "refused" ? "" : took}
      </p>
      {attempt.outcome === "cancelled" ? <Cancelled why={attempt.problem?.detail ?? ""} /> : attempt.problem && <ProblemText problem={attempt.problem} />}
    </>
  );
}

/** Somebody meant it, so it is no error. */
function Cancelled({ why }: { why: string }) {
  return (
    <>
      <p role="status">
        <strong>The run was cancelled.</strong> It left no capture.
      </p>
      {why && <p class="banner-more">{visibleLines(why)}</p>}
    </>
  );
}

interface ActionProps {
  attempt: RunAttempt;
  running: boolean;
  log: boolean;
  onLog: () => void;
}

function Actions({ attempt, running, log, onLog }: ActionProps) {
  const { session } = useStore();
  return (
    <div class="banner-actions">
      {!running && <LogButton open={log} onToggle={onLog} />}
      {running ? (
        <button type="button" class="button" onClick={() => void session.cancel(attempt.id)}>
          Cancel
        </button>
      ) : (
        <>
          <button type="button" class="button" onClick={() => void session.again(attempt.request)}>
            Try again
          </button>
          <IconButton icon="close" label="Close this message" onClick={() => session.dismiss(attempt.id)} />
        </>
      )}
    </div>
  );
}
