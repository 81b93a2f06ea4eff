/** The filter of a list by a step, which the address names as `only`. */
import { IconButton } from '../../../../design/button.tsx'
import { setQuery } from '../../../../router/router.ts'
import { runText as text } from '../text.ts'

/** Shows the key of the step, with a button that clears the filter. */
export const StepFilter = ({ step }: { readonly step: string }) => (
  <span class="badge">
    <span class="user-text">{step}</span>
    <IconButton icon="close" label={text.clearFilter} onClick={() => setQuery({ only: '' })} />
  </span>
)
