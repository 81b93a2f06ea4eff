/** Loads whole lists, for choices and for looking up names. */
import { useEffect } from 'preact/hooks'
import type { CallInput, CallName, CallReply } from './client.ts'
import { type Listing, type QueryOptions, useList } from './query.ts'

/** Maximum number of items that are loaded without a request of the person. */
const MAX_ITEMS = 2000
/** Maximum number of items per page. */
const PAGE = 200

type Item<R> = R extends { readonly items: readonly (infer T)[] } ? T : never

/** Uses a list in a component, and loads its pages one after the other, up to `MAX_ITEMS` items. */
export function useAll<N extends CallName>(
  name: N,
  input: CallInput<N> & { readonly limit?: never },
  options: QueryOptions = {},
): Listing<Item<CallReply<N>>> {
  const list = useList(name, { ...input, limit: PAGE } as CallInput<N>, options)
  const { list: loaded, more, loading, error } = list.state.value
  useEffect(() => {
    if (more && !loading && !error && loaded.length < MAX_ITEMS) list.more()
  }, [more, loading, loaded.length])
  return list
}
