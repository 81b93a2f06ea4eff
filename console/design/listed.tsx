/** Lists that are loaded page by page: their states, and the button that loads more items. */
import type { ComponentChildren, ComponentProps } from 'preact'
import type { Listing } from '../api/query.ts'
import { Button } from './button.tsx'
import { Empty, Failure, Skeleton } from './states.tsx'
import { designText as text } from './text.ts'

/** A button that loads the next page of a list. It is absent on the last page. */
export function MoreButton<T>({ of: { state, more } }: { readonly of: Listing<T> }) {
  const { more: hasMore, loading } = state.value
  return hasMore ? (
    <Button onClick={more} disabled={loading}>
      {text.more}
    </Button>
  ) : null
}

/** A `MoreButton` on a separate line. */
export const More = <T,>({ of }: { readonly of: Listing<T> }) =>
  of.state.value.more ? (
    <div>
      <MoreButton of={of} />
    </div>
  ) : null

/** The content of a page without records, in a card. */
export const EmptyCard = (props: ComponentProps<typeof Empty>) => (
  <section class="card">
    <Empty {...props} />
  </section>
)

/** Shows the items of a list, or `empty` if the list has no items. */
export function Listed<T>({
  of,
  empty,
  lines = 4,
  paged = true,
  children,
}: {
  readonly of: Listing<T>
  readonly empty: ComponentChildren
  /** Number of placeholder bars while the first page is loaded. */
  readonly lines?: number
  /** Whether to show a button that loads the next page. */
  readonly paged?: boolean
  readonly children: (items: readonly T[]) => ComponentChildren
}) {
  const { items, loading, error } = of.state.value
  return (
    <div class="stack">
      {error && <Failure error={error} retry={of.reload} />}
      {items.length > 0 ? children(items) : loading ? <Skeleton lines={lines} /> : !error && empty}
      {paged && <More of={of} />}
    </div>
  )
}
