/** Keeps the focus in the page when the control that had it disappears. */

/**
 * Gives the focus to the first element that a selector names, after the page was rendered.
 */
export const focusPart = (selector: string): void =>
  void setTimeout(() => document.querySelector<HTMLElement>(selector)?.focus())
