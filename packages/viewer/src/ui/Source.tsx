import { visible } from "../format/text";
import { callName, place, type CaptureModel } from "../model/capture";
import { bindingText, rangeText, wayOut, type Step } from "../model/places";
import { useStore } from "../state/store";
import { Copy, Go, Section } from "./bits";

const SHOWN = 6;

interface Props {
  model: CaptureModel;
  id: string | null;
  /** The call that the place is in. */
  call: number;
  unknown?: string | undefined;
}

/** Where something was written, and the way by which the program got there. */
export function Source({ model, id, call, unknown = "No line of Python is known for this." }: Props) {
  const found = place(model, id);
  if (!found) {
    return (
      <Section title="Source">
        <p class="muted">{unknown}</p>
      </Section>
    );
  }
  const binding = bindingText(model, found.location);
  const range = rangeText(found.location);
  return (
    <Section title="Source">
      <p class="source">
        <span class="mono" title={found.digest === null ? "The file's bytes could not be read" : `SHA-256 ${found.digest}`}>{found.full}</span>
        <Copy text={found.exact} label="Copy the location" />
      </p>
      <p class="muted">
        in <span class="mono">{visible(found.location.function)}</span>
        {range && ` · ${range}`} · <span class="binding" title={binding.title}>{binding.text}</span>
      </p>
      {found.location.callersOmitted && <Cut />}
      <Way model={model} steps={wayOut(model, id, call)} />
    </Section>
  );
}

function Way({ model, steps }: { model: CaptureModel; steps: readonly Step[] }) {
  if (steps.length === 0) return null;
  const rows = steps.map((step, i) => <WayStep key={i} model={model} step={step} />);
  return (
    <div class="way">
      <p class="muted">called from</p>
      <ol class="plain-list">{rows.slice(0, SHOWN)}</ol>
      {rows.length > SHOWN && (
        <details>
          <summary class="muted">{rows.length - SHOWN} more, out to the entry</summary>
          <ol class="plain-list">{rows.slice(SHOWN)}</ol>
        </details>
      )}
    </div>
  );
}

function WayStep({ model, step: { place: at, into, cut } }: { model: CaptureModel; step: Step }) {
  const { view } = useStore();
  const binding = bindingText(model, at.location);
  return (
    <li>
      <span class="mono" title={`${at.full} · ${binding.text}: ${binding.title}`}>{at.text}</span>{" "}
      <span class="muted">in <span class="mono">{visible(at.location.function)}</span></span>
      {into !== null && (
        <span class="muted">
          {" "}
          calls <Go onGo={() => view.select({ call: into, op: null })} title="Show this call">{callName(model, into)}</Go>
        </span>
      )}
      {cut && <Cut />}
    </li>
  );
}

function Cut() {
  return <p class="muted">Frames further out were not kept.</p>;
}
