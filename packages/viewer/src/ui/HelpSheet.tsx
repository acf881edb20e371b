import { useStore } from "../state/store";
import { Dialog } from "./Dialog";

const KEYS: readonly (readonly [string[], string])[] = [
  [["/"], "Search"],
  [["Enter"], "In the search: the next match"],
  [["Shift", "Enter"], "In the search: the match before"],
  [["↑", "↓"], "The row above or below"],
  [["←", "→"], "In the tree: close or open a call"],
  [["*"], "In the tree: open all calls beside this one"],
  [["Enter"], "From the tree to the operations, and from there to the inspector"],
  [["←"], "From the operations to the tree"],
  [["Page Up", "Page Down"], "A page up or down"],
  [["Home", "End"], "The first or last row"],
  [["Esc"], "Back from an operation to its call"],
  [["?"], "This sheet"],
];

const COLOURS: readonly (readonly [string, string, string])[] = [
  ["state", "weight f32[64,64]", "a registered parameter or buffer"],
  ["input", "i64[1,6]", "an input of the model"],
  ["computed", "f32[1,6,64]", "made by a recorded operation"],
  ["external", "f32[1]", "made before the run or by something that was not recorded"],
];

export function HelpSheet() {
  const { panel } = useStore();
  return (
    <Dialog title="Keyboard and colours" narrow onClose={() => (panel.value = null)}>
      <dl class="keys">
        {KEYS.map(([keys, text], i) => (
          <div key={i}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <h3>Tensors are marked by where they came from</h3>
      <dl class="keys colours">
        {COLOURS.map(([origin, example, text]) => (
          <div key={origin}>
            <dt>
              <span class={`token tensor ${origin}`}>{example}</span>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <p class="muted">A pen beside an operation means that it writes into one of its operands.</p>
    </Dialog>
  );
}
