/**
 * Assigns the elements of a virtual list to its lines. An element that a line no longer needs is
 * reused for another line, because creating and removing elements costs several times as much as
 * changing their texts. This module needs no browser.
 *
 * Invariant: a line keeps its element, and with it the focus, while it is rendered.
 */

/** Maps the item key of each rendered line to the number of its element, in display order. */
export type Slots = ReadonlyMap<string, number>

/**
 * Returns the slots for the lines with these keys. Lines that were rendered before keep their
 * slots. New lines receive, in display order, the slots of lines that are no longer rendered, so
 * that no element is moved if all lines change.
 */
export function slotsOf(keys: readonly string[], before: Slots): Slots {
  const wanted = new Set(keys)
  const free: number[] = []
  for (const [key, slot] of before) if (!wanted.has(key)) free.push(slot)
  const used = new Set(before.values())
  let unused = 0
  let reused = 0
  const slots = new Map<string, number>()
  for (const key of keys) {
    let slot = before.get(key) ?? free[reused++]
    if (slot === undefined) {
      while (used.has(unused)) unused++
      slot = unused++
    }
    slots.set(key, slot)
  }
  return slots
}

/**
 * Returns the same slots by the keys of the items that they currently show.
 * @param slots the slots by the keys of the items that they should show.
 * @param postponed maps, for each postponed line, the key of the item that it should show to the
 * key of the item that it still shows.
 */
export const shownSlots = (slots: Slots, postponed: ReadonlyMap<string, string>): Slots =>
  postponed.size === 0
    ? slots
    : new Map([...slots].map(([key, slot]) => [postponed.get(key) ?? key, slot]))
