/** A list with its loading, failed and empty states, and a button that loads more items. */
import type { ComponentChildren } from 'preact'
import type { Listing } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { Failure, Skeleton } from '../../design/states.tsx'
import { accessText as text } from './text.ts'

/** Shows the items of a list, or `empty` if there are none. */
export function Listed<T>({
  of: { state, more, reload },
  empty,
  children,
}: {
  readonly of: Listing<T>
  readonly empty: ComponentChildren
  readonly children: (items: readonly T[]) => ComponentChildren
}) {
  const { items, loading, error, more: hasMore } = state.value
  return (
    <div class="stack">
      {error && <Failure error={error} retry={reload} />}
      {items.length > 0 ? children(items) : loading ? <Skeleton /> : !error && empty}
      {hasMore && (
        <div>
          <Button onClick={more} disabled={loading}>
            {text.more}
          </Button>
        </div>
      )}
    </div>
  )
}
