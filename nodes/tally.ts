/**
 * A histogram that costs little to add to: one array of counts for each set of labels, found through two maps. The library's own
 * sorts, joins and checks the labels at every observation. Its text is the library's: this is one more metric of a registry.
 */
import type { Histogram, MetricValueWithName, Registry } from 'prom-client'

/** Counts by bucket, the last one for what lies above all bounds. */
interface Cell { readonly counts: number[]; sum: number }

export class Tally {
  readonly name: string
  readonly help: string
  readonly type = 'histogram'
  readonly aggregator = 'sum'
  readonly #bounds: readonly number[]
  readonly #labels: readonly [string, string] | undefined
  readonly #cells = new Map<string, Map<string | number, Cell>>()

  /** @param bounds ascending. @param labels names of the two labels, if it has any. */
  constructor(registry: Registry, name: string, help: string, bounds: readonly number[], labels?: readonly [string, string]) {
    this.name = name
    this.help = help
    this.#bounds = bounds
    this.#labels = labels
    registry.registerMetric(this as unknown as Histogram)
  }

  /** Count a value. The labels are few: each pair is kept. */
  observe(value: number, first = '', second: string | number = ''): void {
    const cell = this.#cells.get(first)?.get(second) ?? this.#open(first, second)
    let at = 0
    while (at < this.#bounds.length && value > (this.#bounds[at] ?? 0)) at++
    cell.counts[at] = (cell.counts[at] ?? 0) + 1
    cell.sum += value
  }

  /** What the registry asks for. */
  async get(): Promise<Pick<Tally, 'name' | 'help' | 'type' | 'aggregator'> & { readonly values: readonly MetricValueWithName<string>[] }> {
    const values: MetricValueWithName<string>[] = []
    for (const [first, cells] of this.#cells) for (const [second, { counts, sum }] of cells) {
      const labels = this.#labels ? { [this.#labels[0]]: first, [this.#labels[1]]: second } : {}
      let below = 0
      for (const [index, count] of counts.entries()) {
        below += count
        values.push({ labels: { le: this.#bounds[index] ?? '+Inf', ...labels }, value: below, metricName: `${this.name}_bucket` })
      }
      values.push({ labels, value: sum, metricName: `${this.name}_sum` }, { labels, value: below, metricName: `${this.name}_count` })
    }
    return { name: this.name, help: this.help, type: this.type, aggregator: this.aggregator, values }
  }

  #open(first: string, second: string | number): Cell {
    const cells = this.#cells.get(first) ?? new Map<string | number, Cell>()
    this.#cells.set(first, cells)
    const cell = { counts: new Array<number>(this.#bounds.length + 1).fill(0), sum: 0 }
    cells.set(second, cell)
    return cell
  }
}
