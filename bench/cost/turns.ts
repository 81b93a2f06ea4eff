/**
 * Drives trees in turn, in small parts. A change in the speed of the machine then affects all of
 * them, and the alternating order favors none.
 */

/**
 * Number of parts of the load of a round. A part of 750 runs takes about half a second, and the
 * speed of a shared machine changes within seconds.
 */
const PARTS = 20

/** Calls `drive` for each tree and each part of `count` work items, in alternating order. */
export async function inTurn(
  trees: number,
  count: number,
  drive: (tree: number, items: number, part: number) => Promise<void>,
): Promise<void> {
  const parts = Math.min(PARTS, count)
  const order = Array.from({ length: trees }, (_, tree) => tree)
  for (let part = 0; part < parts; part++) {
    const items = Math.floor((count * (part + 1)) / parts) - Math.floor((count * part) / parts)
    for (const tree of part % 2 === 0 ? order : order.toReversed()) await drive(tree, items, part)
  }
}
