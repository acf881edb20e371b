import { useSignal } from "@preact/signals";
import type { CaptureRequest, Problem } from "@tensorviz/contracts";
import type { ComponentChildren } from "preact";
import { visible } from "../format/text";
import { useStore } from "../state/store";
import { Dialog } from "./Dialog";
import { ProblemText } from "./ProblemText";

/** Asks for a run of a file. Nothing is guessed: an empty field is left to the host, which says what it needs. */
export function NewCapture() {
  const { session, panel } = useStore();
  const problem = useSignal<Problem | null>(null);
  const busy = useSignal(false);
  const close = () => (panel.value = null);
  const submit = async (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    busy.value = true;
    problem.value = await session.start(requestOf(new FormData(event.currentTarget)));
    busy.value = false;
    if (problem.value === null) close();
  };
  return (
    <Dialog title="New capture" narrow onClose={close}>
      <form class="form" onSubmit={(event) => void submit(event)}>
        <Fields asked={session.asked.value} problem={problem.value} />
        {problem.value && (
          <div class="callout bad" role="alert">
            <ProblemText problem={problem.value} />
          </div>
        )}
        <div class="form-end">
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={busy.value}>
            Capture
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Fields({ asked, problem }: { asked: CaptureRequest | undefined; problem: Problem | null }) {
  return (
    <>
      <Field label="Python file" note="In the host's workspace. It is imported and the model is run once, in a process of its own." fault={faultAt(problem, "file")}>
        <input name="file" required placeholder="models/gpt.py" defaultValue={asked?.file ?? ""} />
      </Field>
      <Field label="Target" note="A module class, a function that makes a model, a model, or nothing to let the file decide." fault={faultAt(problem, "target")}>
        <input name="target" placeholder="GPT" defaultValue={asked?.target ?? ""} />
      </Field>
      <div class="form-row">
        <Field label="Inputs from file" note="Empty: example_inputs and other conventions of the file itself." fault={faultAt(problem, "inputs")}>
          <input name="inputsFile" placeholder="models/inputs.py" defaultValue={asked?.inputs?.file ?? ""} />
        </Field>
        <Field label="Function">
          <input name="inputsFunction" placeholder="make_inputs" defaultValue={asked?.inputs?.function ?? ""} />
        </Field>
      </div>
      <div class="form-row">
        <Field label="Mode">
          <select name="mode">
            {(["eval", "train", "as_is"] as const).map((mode) => (
              <option key={mode} value={mode} selected={(asked?.mode ?? "eval") === mode}>
                {mode === "as_is" ? "as the model is" : mode}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Deadline in seconds" fault={faultAt(problem, "timeout")}>
          <input name="timeout" type="number" min="1" max="86400" step="any" defaultValue={String(asked?.timeout ?? 60)} />
        </Field>
      </div>
      <label class="check">
        <input type="checkbox" name="fake" defaultChecked={asked?.fake ?? false} /> Fake tensors: shapes without numbers, for models that do not fit
      </label>
    </>
  );
}

function Field(props: { label: string; note?: string; fault?: string | undefined; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{props.label}</span>
      {props.children}
      {props.fault ? <small class="fault">{props.fault}</small> : props.note && <small>{props.note}</small>}
    </label>
  );
}

function faultAt(problem: Problem | null, field: string): string | undefined {
  const message = problem?.faults.find(({ path }) => path.includes(field))?.message;
  return message === undefined ? undefined : visible(message);
}

function requestOf(form: FormData): CaptureRequest {
  const text = (name: string) => String(form.get(name) ?? "").trim();
  const inputs = { file: text("inputsFile") || text("file"), function: text("inputsFunction") };
  return {
    file: text("file"),
    target: text("target") || null,
    inputs: inputs.function ? inputs : null,
    mode: text("mode") as NonNullable<CaptureRequest["mode"]>,
    fake: form.get("fake") !== null,
    timeout: Number(text("timeout")) || 60,
  };
}
