/** Follows changes to the organization's records, which belong to no project. */
import { useEffect, useRef } from 'preact/hooks'
import { live } from '../../api/live.ts'
import type { LiveChanges } from '../../live/live.ts'

/** Time over which changes are combined into one reload. */
const GATHERED_MS = 500

/** Calls `reload` after a record of one of these kinds has changed. */
export function useOrganizationChanges(kinds: readonly string[], reload: () => void): void {
  const latest = useRef(reload)
  latest.current = reload
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const reloadSoon = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined
        latest.current()
      }, GATHERED_MS)
    }
    const stop = live().follow(
      { topic: 'changes' },
      {
        frame: ({ data }) => {
          const { changes } = data as LiveChanges
          if (changes.some(({ kind }) => kind === '*' || kinds.includes(kind))) reloadSoon()
        },
        // Changes made before the subscription are not delivered, so everything is reloaded.
        state: ({ state }) => {
          if (state === 'live') reloadSoon()
        },
      },
    )
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [])
}
