/** Follows the records of the organization, which belong to no project. */
import { useEffect, useRef } from 'preact/hooks'
import { live } from '../../api/live.ts'
import type { LiveChanges } from '../../live/live.ts'

/** Milliseconds in which several changes count as one. */
const GATHERED_MS = 500

/** Calls `reload` after a record of one of these kinds has changed. */
export function useOrganizationChanges(kinds: readonly string[], reload: () => void): void {
  const latest = useRef(reload)
  latest.current = reload
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = live().follow(
      { topic: 'changes' },
      {
        frame: ({ data }) => {
          const { changes } = data as LiveChanges
          if (!changes.some(({ kind }) => kind === '*' || kinds.includes(kind))) return
          timer ??= setTimeout(() => {
            timer = undefined
            latest.current()
          }, GATHERED_MS)
        },
      },
    )
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [])
}
