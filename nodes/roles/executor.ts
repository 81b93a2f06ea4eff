/** The role executor: what the service does itself, with the handlers that this release has. */
import type { Directory } from '../../gateway/directory.ts'
import type { World } from '../../gateway/ports.ts'
import { subjects } from '../../protocol/subjects.ts'
import type { GatewayMessage, Offer } from '../../protocol/worker.ts'
import { deliveries } from '../executor/deliveries.ts'
import { startExecutor, type Executor } from '../executor/executor.ts'
import { httpActions } from '../executor/http-action.ts'
import type { Bus } from '../host/ports.ts'
import type { Guard } from '../outbound/guard.ts'
import { createPost } from '../outbound/post.ts'

interface Role {
  readonly world: World
  readonly bus: Bus
  readonly directory: Directory
  readonly guard: Guard
  readonly limit: number
}

/** Take work that no worker gets. Returns how to stop in order. */
export function startExecutorRole({ world, bus, directory, guard, limit }: Role): () => Promise<void> {
  const mailbox = subjects.executor(world.node)
  const post = createPost(guard)
  const executor: Executor = startExecutor({
    world, mailbox, limit, handlers: { action_execution: httpActions({ world, directory, post }), delivery: deliveries({ world, directory, post }) },
    listen: (handler) => bus.subscribe(subjects.serveAll, (message) => handler(message as Offer), subjects.serveGroup),
  })
  const deaf = bus.subscribe(subjects.gateway(mailbox), (message) => {
    const told = message as GatewayMessage
    if (told.type !== 'forget') return executor.receive(told)
    directory.forget(told.project)
    return { ok: true }
  })
  // What waits may be the service's work since this change.
  const unwatch = directory.onChange((id) => { if (id !== undefined && id !== world.organization()) world.demand(id) })
  return async () => {
    unwatch()
    await executor.stop()
    deaf()
  }
}
