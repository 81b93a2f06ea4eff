/**
 * Records when keys and console sessions were last used. Requests record a use in memory. A timer
 * reports the uses to the project or organization that owns them. Each gateway reports a key at most
 * once a minute, and a session once per `useInterval`. A lost report only makes the stored time older
 * than the last use.
 */

import { useInterval } from '../../protocol/access/console-rows.ts'
import type { World } from '../ports.ts'
import type { Caller } from './authenticate.ts'

export interface Touches {
  /** Records a use of the caller's key and console session. */
  note(caller: Caller): void
  close(): void
}

/**
 * Minimum time between two reports of the same key, and maximum time between those of a session in
 * use, in milliseconds.
 */
const REPORT_EVERY_MS = 60_000
/** Time in milliseconds for which uses are collected before they are reported together. */
const BATCH_MS = 1000

/**
 * Creates the recorder of a gateway. Uses that are not reported when the recorder is closed are
 * lost.
 */
export function openTouches(world: World): Touches {
  const reportedAt = new Map<string, number>()
  const waiting = new Map<string, string[]>()
  let timer: (() => void) | undefined
  let count = 0

  const flush = (): void => {
    timer = undefined
    const [at, elapsed] = [world.now(), world.monotonic()]
    for (const [id, since] of reportedAt)
      if (elapsed - since >= REPORT_EVERY_MS) reportedAt.delete(id)
    const organization = world.organization()
    for (const [home, ids] of waiting) {
      const kind = home === organization ? 'organization' : 'project'
      const origin = {
        at,
        principal: { type: 'system', id: 'system' },
        credential: { type: 'internal', id: world.node },
      } as const
      const command = {
        project: home,
        kind,
        id: home,
        command_id: `touch:${world.node}:${at}:${count++}`,
        name: 'key.touch',
        input: { ids },
        origin,
      } as const
      world
        .command(command)
        .catch((error: unknown) =>
          world.log.debug(
            { event: 'key_use_record_failed', err: error, home },
            'key use not recorded',
          ),
        )
    }
    waiting.clear()
  }
  const noteOne = (home: string, id: string, every: number): void => {
    const at = world.monotonic()
    if (at - (reportedAt.get(id) ?? -REPORT_EVERY_MS) < every) return
    reportedAt.set(id, at)
    waiting.set(home, [...(waiting.get(home) ?? []), id])
    timer ??= world.later(BATCH_MS, flush)
  }
  return {
    note({ scope, credential, session }) {
      const home = scope.kind === 'organization' ? world.organization() : scope.project_id
      if (credential.type !== 'console_session') noteOne(home, credential.id, REPORT_EVERY_MS)
      if (session) noteOne(world.organization(), session.id, useInterval(session))
    },
    close: () => timer?.(),
  }
}
