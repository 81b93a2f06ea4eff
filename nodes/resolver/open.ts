/** Creates the definition resolver of a node. */
import type { DefinitionResolver, Log } from '../../gateway/ports.ts'
import { names } from '../../protocol/subjects.ts'
import type { Clock, Random } from '../host/ports.ts'
import { createRegistry } from '../nats/journal/registry.ts'
import type { Nats } from '../nats/server/connect.ts'
import type { Post } from '../outbound/post.ts'
import type { Installed } from '../storage/installation.ts'
import { createSecretBox } from '../storage/secret-box.ts'
import { callResolver } from './call.ts'
import { createDefinitionResolver, type ResolverMeasure } from './resolver.ts'
import { createDefinitionStore } from './store.ts'

/** The parts of a node that its resolver uses. `brand` is part of the names of headers. */
export interface ResolverParts {
  readonly nats: Nats
  readonly post: Post
  readonly brand: string
  readonly installed: Installed
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly measure: ResolverMeasure
}

/** Length of a call id in bytes. */
const ID_BYTES = 16

export function openResolver(parts: ResolverParts): DefinitionResolver {
  const { nats, post, brand, installed, clock, random, log, measure } = parts
  const { unlock } = createSecretBox(Buffer.from(installed.secret, 'hex'), random)
  // Every call has a timeout, so a stopping node need not abort it.
  const { signal } = new AbortController()
  const calling = { post, unlock, brand, organization: installed.organization, signal }
  return createDefinitionResolver({
    store: createDefinitionStore(createRegistry(nats, names.definitions, undefined, (key) => key)),
    call: (question, trigger, digest, id) => callResolver(calling, question, trigger, digest, id),
    clock,
    mint: () => Buffer.from(random.bytes(ID_BYTES)).toString('hex'),
    log,
    measure,
  })
}
