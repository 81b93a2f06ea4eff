/** The person's preferences for lists of runs, stored with the account. */
import { useEffect, useState } from 'preact/hooks'
import { ApiError, call } from '../../../api/client.ts'
import { useQuery } from '../../../api/query.ts'
import { showError } from '../../../design/notify.ts'

/** HTTP status of a change that is based on an older version. */
const CONFLICT = 409
/** Maximum number of attempts to store a change that conflicts with other changes. */
const MAX_ATTEMPTS = 3

/**
 * Loads the chosen columns.
 * @returns the names of the columns, or undefined while the defaults apply, and a function that
 * stores a new choice.
 */
export function useColumns(
  project: string,
): readonly [readonly string[] | undefined, (columns: readonly string[]) => Promise<void>] {
  const stored = useQuery('me.preferences', { project })
  const { data } = stored.state.value
  const [chosen, setChosen] = useState<readonly string[]>()
  const known = (data?.preferences as { runs?: { columns?: unknown } } | undefined)?.runs?.columns
  const columns = Array.isArray(known) ? known.map(String) : undefined
  useEffect(() => setChosen(undefined), [project])
  const save = async (next: readonly string[]): Promise<void> => {
    setChosen(next)
    // Another tab may change other preferences at the same time, so a conflict is retried.
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const { preferences, version } = await call('me.preferences', { project })
      const { runs = {}, ...rest } = preferences as { runs?: object }
      try {
        await call('me.save_preferences', {
          project,
          preferences: { ...rest, runs: { ...runs, columns: [...next] } },
          expected_version: version,
        })
        stored.reload()
        return
      } catch (error) {
        if (error instanceof ApiError && error.status === CONFLICT) continue
        showError(error)
        return
      }
    }
  }
  return [chosen ?? columns, save]
}
