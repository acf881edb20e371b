import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { IconButton } from "./bits";

/** A modal sheet. The browser keeps the focus inside it and gives it back afterwards. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren; narrow?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    dialog?.querySelector("input")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      class={`dialog ${props.narrow ? "narrow" : ""}`}
      aria-labelledby={title}
      onClose={props.onClose}
      onClick={(event) => event.target === ref.current && props.onClose()}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id={title}>{props.title}</h2>
          <IconButton icon="close" label="Close" onClick={props.onClose} />
        </header>
        <div class="dialog-content">{props.children}</div>
      </div>
    </dialog>
  );
}
