import { useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { modelName } from "../model/capture";
import { useStore, type Store } from "../state/store";
import { DetailsPanel } from "./DetailsPanel";
import { Footer } from "./Footer";
import { Header } from "./Header";
import { HelpSheet } from "./HelpSheet";
import { Inspector } from "./Inspector";
import { NewCapture } from "./NewCapture";
import { Notices } from "./Notices";
import { Middle } from "./Operations";
import { applyWidths, Splitter } from "./Splitter";
import { Tree } from "./Tree";
import { Waiting } from "./Waiting";

export function App() {
  const store = useStore();
  const { view, panel } = store;
  useKeyboard(store);
  useEffect(applyWidths, []);
  useSignalEffect(() => {
    document.title = view.model.value ? `${modelName(view.model.value)} · tensorviz` : "tensorviz";
  });
  return (
    <div class="app">
      <Header />
      <Notices />
      {view.model.value ? (
        <div class="panes">
          <Tree />
          <Splitter pane="tree" label="Width of the module tree" />
          <Middle />
          <Splitter pane="inspector" label="Width of the inspector" />
          <Inspector />
        </div>
      ) : (
        <Waiting />
      )}
      {view.model.value && <Footer />}
      {panel.value === "details" && <DetailsPanel />}
      {panel.value === "help" && <HelpSheet />}
      {panel.value === "new" && <NewCapture />}
    </div>
  );
}

/** Keys that work everywhere, except where somebody is typing or a sheet is open. */
function useKeyboard({ view, panel }: Store): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { target } = event;
      const typing = target instanceof HTMLElement && target.closest("input, textarea, select, dialog") !== null;
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") document.getElementById("search")?.focus();
      else if (event.key === "?") panel.value = "help";
      else if (event.key === "Escape" && view.selection.value.op !== null) view.select({ op: null });
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [panel, view]);
}
