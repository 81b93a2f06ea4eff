/** Moving through a list by keys: the focus moves between the links of its lines. */

/** Moves the focus to the link of the next (1) or previous (−1) line of a list. */
export function moveInRows(list: HTMLElement | null, step: 1 | -1): void {
  const links = [...(list?.querySelectorAll<HTMLElement>('.row-link') ?? [])]
  const at = links.indexOf(document.activeElement as HTMLElement)
  const next = at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + step))
  links[next]?.focus()
}
