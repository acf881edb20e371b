/** Small choices that a browser keeps for the next visit. A browser that keeps nothing is no reason to fail. */
const PREFIX = "tensorviz.v1.";

export function remember(name: string, text: string): void {
  try {
    localStorage.setItem(PREFIX + name, text);
  } catch {
    // storage is switched off or full: the choice holds until the page is closed
  }
}

export function recall(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}
