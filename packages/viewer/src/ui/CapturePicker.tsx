import { useSignal } from "@preact/signals";
import type { CaptureSummary } from "@tensorviz/contracts";
import { useEffect, useRef } from "preact/hooks";
import { bytes, clock, plural } from "../format/numbers";
import { fileName, lastComponent, visible } from "../format/text";
import { modelName, position, type CaptureModel } from "../model/capture";
import { useStore } from "../state/store";
import { Badge, IconButton } from "./bits";
import { Icon } from "./icons";

/** What is displayed, and the list of what else could be. */
export function CapturePicker() {
  const { view, session } = useStore();
  const open = useSignal(false);
  const ref = useRef<HTMLDivElement>(null);
  const model = view.model.value;
  useEffect(() => {
    const away = (event: Event) => {
      if (!ref.current?.contains(event.target as Node)) open.value = false;
    };
    addEventListener("pointerdown", away);
    addEventListener("focusin", away);
    return () => {
      removeEventListener("pointerdown", away);
      removeEventListener("focusin", away);
    };
  }, [open]);
  if (!model && session.ledger.value.captures.length === 0) return null;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !open.value) return;
    event.stopPropagation();
    open.value = false;
    ref.current?.querySelector<HTMLElement>(".picker-button")?.focus();
  };
  return (
    <div class="picker" ref={ref} onKeyDown={onKeyDown}>
      <button type="button" class="picker-button" aria-expanded={open.value} aria-haspopup="true" onClick={() => (open.value = !open.value)}>
        {model ? <Current model={model} /> : <span class="picker-name">Choose a capture</span>}
        <Icon name="down" />
      </button>
      {model && <Standing model={model} />}
      {open.value && <Captures onDone={() => (open.value = false)} />}
    </div>
  );
}

function Current({ model }: { model: CaptureModel }) {
  const target = targetText(model);
  return (
    <>
      <span class="picker-name">{modelName(model)}</span>
      <span class="picker-target" title={target}>{target}</span>
    </>
  );
}

function targetText({ snapshot }: CaptureModel): string {
  const { file, target } = snapshot.execution;
  const path = file === null ? null : snapshot.source.files[position(file)]?.path;
  return path ? `${visible(fileName(path))}:${visible(target)}` : visible(target);
}

/** Beside the name: is it whole, is it still held, and can it be made again. */
function Standing({ model }: { model: CaptureModel }) {
  const { panel, session } = useStore();
  const { snapshot } = model;
  const attempt = session.ledger.value.attempts.find(({ id }) => id === snapshot.attempt);
  const partial = snapshot.status === "partial";
  const gone = session.known.value && !session.displayed.value;
  return (
    <>
      <button type="button" class="badge-button" title="Capture details" onClick={() => (panel.value = "details")}>
        <Badge tone={partial ? "warn" : "good"}>{snapshot.status}</Badge>
      </button>
      {snapshot.valuesUnavailable && <Badge tone="plain" title="Shapes without numbers">fake tensors</Badge>}
      {gone && <Badge tone="plain" title="The host no longer holds this capture; it stays here until the page is closed">released by the host</Badge>}
      {attempt && <IconButton icon="again" label="Capture this again" onClick={() => void session.again(attempt.request)} />}
    </>
  );
}

function Captures({ onDone }: { onDone: () => void }) {
  const { session, panel } = useStore();
  const { captures } = session.ledger.value;
  return (
    <div class="picker-menu">
      <p class="picker-title">Captures held by the host</p>
      <ul>
        {captures.map((capture) => (
          <li key={capture.id}>
            <CaptureRow capture={capture} onDone={onDone} />
          </li>
        ))}
        {captures.length === 0 && <li class="quiet">none</li>}
      </ul>
      <button
        type="button"
        class="picker-row new"
        onClick={() => {
          onDone();
          panel.value = "new";
        }}
      >
        <Icon name="plus" /> New capture…
      </button>
    </div>
  );
}

function CaptureRow({ capture, onDone }: { capture: CaptureSummary; onDone: () => void }) {
  const { view, session } = useStore();
  const current = view.model.value?.snapshot.id === capture.id;
  const name = visible(capture.model === null ? lastComponent(capture.target) : lastComponent(capture.model));
  const from = `${capture.file === null ? "" : `${visible(fileName(capture.file))}:`}${visible(capture.target)}`;
  return (
    <button
      type="button"
      class="picker-row"
      aria-current={current}
      onClick={() => {
        onDone();
        void session.show(capture.id);
      }}
    >
      <span class="picker-row-name" title={`${name} ${from}`}>
        {name} <span class="muted">{from}</span>
      </span>
      <span class="picker-row-facts">
        {clock(capture.created)} · {plural(capture.operations, "operation")} · {bytes(capture.bytes)}
      </span>
      <Badge tone={capture.status === "partial" ? "warn" : "good"}>{capture.status}</Badge>
    </button>
  );
}
