import { effect, signal } from "@preact/signals";
import { recall, remember } from "./memory";

export type Theme = "system" | "light" | "dark";

const THEMES: readonly Theme[] = ["system", "light", "dark"];
const stored = recall("theme");

export const theme = signal<Theme>(THEMES.find((name) => name === stored) ?? "system");

/** Keeps the document in step with the choice; the style sheet reads `data-theme`, and the system decides without it. */
export function applyTheme(): void {
  effect(() => {
    remember("theme", theme.value);
    if (theme.value === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.value;
  });
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "system";
}
