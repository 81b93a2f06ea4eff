/** What the machines around a gateway ask: whether it lives, whether it can work, and its numbers. */
import type { World } from './ports.ts'
import type { Answer } from './respond.ts'

/** Answers by path. @param stopping whether the gateway takes no new work. */
export const openStatus = (
  world: World,
  stopping: () => boolean,
): Readonly<Record<string, () => Promise<Answer>>> => ({
  '/healthz': async () => ({ status: 200, body: { status: 'alive' } }),
  '/readyz': async () => {
    const reasons = stopping()
      ? ['stopping']
      : await world
          .unready()
          .catch((error: unknown) => [error instanceof Error ? error.message : String(error)])
    return reasons.length === 0
      ? { status: 200, body: { status: 'ready' } }
      : { status: 503, headers: { 'Retry-After': '1' }, body: { status: 'not ready', reasons } }
  },
  '/metrics': async () => ({
    status: 200,
    text: await world.metrics(),
    type: 'text/plain; version=0.0.4; charset=utf-8',
  }),
})
