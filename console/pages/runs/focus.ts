/** Keeps the focus in the page when the focused control disappears. */

/** Focuses the first element that matches a selector, after the page has been rendered. */
export const focusPart = (selector: string): void =>
  void setTimeout(() => document.querySelector<HTMLElement>(selector)?.focus())
