/** The search in a list of definitions. The search text is the query parameter `q`. */
import { Button } from '../../design/button.tsx'
import { SearchField } from '../../design/field.tsx'
import { Empty } from '../../design/states.tsx'
import { setQuery } from '../../router/router.ts'
import { buildText as text } from './text.ts'

/** The field for the search text. */
export const ListSearch = ({ value }: { readonly value: string }) => (
  <div class="list-search">
    <SearchField label={text.search} value={value} onValue={(q) => setQuery({ q })} />
  </div>
)

/** Reports that nothing matches the search and the filters. `onClear` clears both. */
export const NothingFound = ({ onClear }: { readonly onClear: () => void }) => (
  <Empty icon="search" title={text.nothingFound}>
    <Button onClick={onClear}>{text.clearSearch}</Button>
  </Empty>
)
