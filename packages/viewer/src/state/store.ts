import { signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Host } from "../host/host";
import { createFinder } from "./finder";
import { createSession } from "./session";
import { createView } from "./view";

export type Panel = "details" | "help" | "new";

export type Store = ReturnType<typeof createStore>;

/** All state of the page. Components read its signals and call its actions; nothing else changes it. */
export function createStore(host: Host) {
  const view = createView();
  return { view, finder: createFinder(view), session: createSession(host, view), panel: signal<Panel | null>(null) };
}

const StoreContext = createContext<Store | null>(null);
export const StoreProvider = StoreContext.Provider;

export function useStore(): Store {
  const store = useContext(StoreContext);
  if (!store) throw new Error("a component was rendered outside the store");
  return store;
}
