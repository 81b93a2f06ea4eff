/**
 * Keyboard navigation in a list: `j` and `k` move between the rows, Enter opens the focused row.
 */
import { useRef } from 'preact/hooks'
import { type Command, useCommands } from './shortcuts.ts'
import { shellText as text } from './text.ts'

/** Attribute that marks the link of a row. */
export const rowLink = { 'data-row': '' }

/**
 * Registers the keys while a list is shown.
 * @returns the ref of the element that contains the links marked with `rowLink`.
 */
export function useRowKeys<E extends HTMLElement>() {
  const frame = useRef<E>(null)
  const move = (step: 1 | -1): void => {
    const all = [...(frame.current?.querySelectorAll<HTMLElement>('[data-row]') ?? [])]
    const at = all.indexOf(document.activeElement as HTMLElement)
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step
    all[Math.max(0, Math.min(next, all.length - 1))]?.focus()
  }
  const own: readonly Command[] = [
    { id: 'row.next', label: text.nextRow, keys: 'j', run: () => move(1) },
    { id: 'row.previous', label: text.previousRow, keys: 'k', run: () => move(-1) },
  ]
  useCommands(own, [])
  return frame
}
