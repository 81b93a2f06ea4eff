/** The actors of a shard that are in memory, and how the others come in: from their snapshot, else as new. */
import type { Address } from '../../protocol/entry.ts'
import { cellKey, freshCell, restore, type Cell } from './cell.ts'
import type { HostDeps } from './deps.ts'

/** A snapshot could not be read: the shard cannot go on, but nobody is to blame. */
export class Unreadable extends Error {}

export class Cells {
  readonly #deps: HostDeps
  readonly #partition: number
  readonly #cells = new Map<string, Cell>()

  constructor(deps: HostDeps, partition: number) {
    this.#deps = deps
    this.#partition = partition
  }
  get size(): number {
    return this.#cells.size
  }
  all(): IterableIterator<Cell> {
    return this.#cells.values()
  }
  /** The cell, if it is in memory. */
  loaded(address: Address): Cell | undefined {
    return this.#cells.get(cellKey(address))
  }
  /** The cell, read from its snapshot when it is not in memory. Only the shard's loop calls this, one at a time. */
  get(address: Address): Cell | Promise<Cell> {
    return this.loaded(address) ?? this.#load(address)
  }
  /** A cell without a look at the snapshots: for an actor that has no event yet. */
  fresh(address: Address): Cell {
    const cell = freshCell(address, this.#deps.kinds[address.kind], this.#deps.clock.elapsed())
    this.#cells.set(cell.key, cell)
    return cell
  }
  /** Leave memory; what it holds must be stored. */
  evict(cell: Cell): void {
    this.#cells.delete(cell.key)
  }
  clear(): void {
    this.#cells.clear()
  }

  async #load(address: Address): Promise<Cell> {
    const data = await this.#deps.snapshots.get(this.#partition, cellKey(address)).catch((cause) => { throw new Unreadable('a snapshot cannot be read', { cause }) })
    const cell = this.fresh(address)
    if (data) restore(cell, data, this.#deps.clock.now())
    return cell
  }
}
