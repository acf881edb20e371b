import type { Connection } from "../host/host";
import { count } from "../format/numbers";
import { useStore } from "../state/store";
import { nextTheme, theme, type Theme } from "../state/theme";
import { IconButton } from "./bits";
import { CapturePicker } from "./CapturePicker";
import { Icon, type IconName } from "./icons";

export function Header() {
  const { view, panel, session } = useStore();
  return (
    <header class="header">
      <span class="brand">
        tensor<b>viz</b>
      </span>
      <CapturePicker />
      <span class="spacer" />
      {view.model.value && <Search />}
      {session.connection.value !== "unauthorized" && session.connection.value !== "tokenless" && (
        <IconButton icon="plus" label="New capture" onClick={() => (panel.value = "new")} />
      )}
      <ThemeButton />
      <IconButton icon="help" label="Keyboard and colours (?)" onClick={() => (panel.value = "help")} />
      <ConnectionMark />
    </header>
  );
}

function Search() {
  const { finder } = useStore();
  const asked = finder.query.value.trim() !== "";
  const found = finder.hits.value.length;
  const at = finder.at.value;
  const said = !asked ? "" : found === 0 ? "none" : at < 0 ? count(found) : `${count(at + 1)} of ${count(found)}`;
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLInputElement }) => {
    if (event.key === "Enter") finder.go(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape" && asked) finder.ask("");
    else if (event.key === "Escape") event.currentTarget.blur();
    else return;
    event.preventDefault();
  };
  return (
    <div class="search" role="search">
      <Icon name="search" />
      <input
        id="search"
        type="text"
        aria-label="Search operations, modules, shapes, dtypes and source lines"
        placeholder="Search operations, modules, shapes…"
        spellcheck={false}
        autocomplete="off"
        value={finder.query.value}
        onFocus={finder.prepare}
        onInput={(event) => finder.ask(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <output class={found === 0 && asked ? "none" : ""} aria-live="polite">
        {said}
      </output>
      {asked ? (
        <>
          <IconButton icon="up" label="Previous match (Shift Enter)" class="small" onClick={() => finder.go(-1)} />
          <IconButton icon="down" label="Next match (Enter)" class="small" onClick={() => finder.go(1)} />
        </>
      ) : (
        <kbd aria-hidden="true">/</kbd>
      )}
    </div>
  );
}

const THEMES: Record<Theme, readonly [IconName, string]> = {
  system: ["auto", "Colours: as the system. Switch to light"],
  light: ["sun", "Colours: light. Switch to dark"],
  dark: ["moon", "Colours: dark. Switch to the system's"],
};

function ThemeButton() {
  const [icon, label] = THEMES[theme.value];
  return <IconButton icon={icon} label={label} onClick={nextTheme} />;
}

const STATES: Record<Connection, readonly [string, string]> = {
  connecting: ["Connecting", "Waiting for the host's first answer"],
  live: ["Live", "Connected: new captures appear here by themselves"],
  reconnecting: ["Reconnecting", "The host does not answer; what is shown stays. If it has ended, start it again with tensorviz open and use the address that it prints. Click to try now"],
  unauthorized: ["No access", "The host does not accept this page's token: use the address that it printed when it started"],
  tokenless: ["No access", "This page was opened without a token: use the address that tensorviz printed when it started"],
};

function ConnectionMark() {
  const { session } = useStore();
  const state = session.connection.value;
  const [text, title] = STATES[state];
  return (
    <button type="button" class={`connection ${state}`} title={title} onClick={() => session.retry()}>
      <span class="dot" aria-hidden="true" />
      <span role="status">{text}</span>
    </button>
  );
}
