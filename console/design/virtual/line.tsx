/** A line of a virtual list. */
import { Component, type ComponentChildren, createRef } from 'preact'
import { differ } from '../pure.ts'
import type { RenderBudget } from './budget.ts'

/** The content of a line: its cells, and the URL to which the line links. */
export interface LineContent {
  readonly cells: readonly ComponentChildren[]
  readonly href?: string
  readonly selected?: boolean
}

interface LineProps<T> {
  /** The key of the item. */
  readonly id: string
  readonly item: T
  readonly render: (item: T) => LineContent
  readonly index: number
  readonly current: boolean
  readonly columns: string
  readonly height: number
  /** Distance from the start of the list in pixels. */
  readonly top: number
  readonly budget: RenderBudget
}

/** A line of a virtual list. After a change, it is re-rendered in a frame that has time for it. */
export class Line<T> extends Component<LineProps<T>> {
  readonly #frame = createRef<HTMLDivElement>()
  /** The props of the last render. `this.props` may already be newer. */
  #shown: LineProps<T> | undefined
  /** The key of the item that was shown before the last render. */
  #before: string | undefined
  override shouldComponentUpdate(next: LineProps<T>): boolean {
    if (!this.#shown) return true
    if (!differ(next, this.#shown)) return false
    const change = { shown: this.#shown.id, next: next.id, index: next.index }
    return next.budget.allows(change, performance.now())
  }
  override componentDidUpdate(): void {
    // The element may show another item now. If it kept the focus, Enter would open that item's
    // link.
    const { current: line } = this.#frame
    if (this.#before !== this.props.id && line?.contains(document.activeElement))
      line.closest<HTMLElement>('.virtual')?.focus({ preventScroll: true })
  }
  override render(props: LineProps<T>) {
    const { item, render, index, current, columns, height, top } = props
    this.#before = this.#shown?.id
    this.#shown = props
    const { cells, href, selected = false } = render(item)
    return (
      <div
        ref={this.#frame}
        role="row"
        class={`line${selected ? ' selected' : ''}${current ? ' current' : ''}`}
        style={{
          gridTemplateColumns: columns,
          height: `${height}px`,
          transform: `translateY(${top}px)`,
        }}
        aria-rowindex={index + 1}
        aria-selected={selected}
      >
        {cells.map((cell, at) => (
          <div role="cell" class="clip" key={at}>
            {at === 0 && href !== undefined ? (
              <a class="whole" href={href}>
                {cell}
              </a>
            ) : (
              cell
            )}
          </div>
        ))}
      </div>
    )
  }
}
