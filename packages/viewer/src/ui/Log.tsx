import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { visible, visibleLines } from "../format/text";
import { useStore } from "../state/store";

export function LogButton({ open, onToggle }: { open: boolean; onToggle: () => void }) {
  return (
    <button type="button" class="button" aria-expanded={open} onClick={onToggle}>
      Log
    </button>
  );
}

/** What the program printed. The host keeps the log bounded. */
export function Log({ id }: { id: string }) {
  const { session } = useStore();
  const text = useSignal("Reading…");
  useEffect(() => {
    void session.readLog(id).then((answer) => {
      if (typeof answer !== "string") text.value = visible(answer.title);
      else text.value = answer === "" ? "The program printed nothing." : visibleLines(answer);
    });
  }, [id, session, text]);
  return (
    <pre class="log" tabIndex={0} aria-label="What the program printed">
      {text.value}
    </pre>
  );
}
