/** A gateway that decides upgrades of worker sockets, without real sockets. */
import { openAuthentication } from '../../../gateway/auth/authenticate.ts'
import { createLimits } from '../../../gateway/auth/rate.ts'
import { createUpgrade } from '../../../gateway/workers/upgrade.ts'
import type { GatewayMessage } from '../../../protocol/workers/messages.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { fakeWorld } from '../../support/fake-world.ts'
import { edge, PRJ } from '../support/given.ts'

/** Creates the gateway of `given.ts` with the additional ports that the worker socket needs. */
export function given(
  anonymous_worker?: string,
  rate = { key: 0, organization: 0, window_seconds: 60 },
) {
  const it = edge()
  let handler: ((message: GatewayMessage) => unknown) | undefined
  const world = fakeWorld({
    ...it.world,
    fresh: () => it.fresh,
    settings: {
      ...it.world.settings,
      shards: 4,
      timing: defaultTiming,
      rate,
      ...(anonymous_worker !== undefined && { anonymous_worker }),
    },
    id: (prefix: string) => `${prefix}_1`,
    count: { request() {}, open() {}, inc() {} },
    demand() {},
    onOffer: () => () => {},
    onMessage: (on: typeof handler) => {
      handler = on
    },
    command: async ({ name, input }: { name: string; input: object }) =>
      name === 'worker.register'
        ? {
            reply: {
              registration: { ...input, generation: 1, connected_at: 0 },
              resumed: false,
              draining: false,
            },
          }
        : { reply: undefined },
  })
  const authentication = openAuthentication(world, it.directory)
  const upgrade = createUpgrade(world, it.directory, authentication, createLimits(world))
  const asked = { project: 'default', protocols: '', remote: '10.0.0.1', request_id: 'req_1' }
  const ask = (
    authorization: string,
    more: { project?: string; protocols?: string; remote?: string } = {},
  ) => upgrade({ ...asked, authorization, ...more })
  return Object.assign(it, {
    world,
    authentication,
    ask,
    message: (message: GatewayMessage) => handler?.(message),
    worker: it.projectKey(PRJ, 'worker'),
  })
}
