import { plural } from "../format/numbers";
import { visible } from "../format/text";
import type { CaptureModel } from "../model/capture";
import { useStore } from "../state/store";

/** The capture in one line, with the conditions that change what is dispatched. */
export function Footer() {
  const { view, panel } = useStore();
  const { snapshot } = view.model.value as CaptureModel;
  const { environment, execution } = snapshot;
  return (
    <footer class="footer">
      <span>{plural(snapshot.operations.length, "operation")}</span>
      <span>{plural(snapshot.invocations.length, "module call")}</span>
      <span>{plural(snapshot.values.length, "tensor value")}</span>
      <span class="spacer" />
      <span>torch {visible(environment.torch)}</span>
      <span>Python {visible(environment.python)}</span>
      <span>{execution.mode === "as_is" ? "mode as it was" : execution.mode}</span>
      <span>gradients {execution.gradEnabled ? "on" : "off"}</span>
      <button type="button" class="go" onClick={() => (panel.value = "details")}>
        All details
      </button>
    </footer>
  );
}
