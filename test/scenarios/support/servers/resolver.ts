/**
 * A definition resolver on loopback, over TLS with a self-signed certificate. Tests set its
 * responses.
 */
import { createServer } from 'node:https'
import { cert, key } from './loopback.ts'
import { json, type Receiver, receiver } from './receiver.ts'

interface Asked {
  readonly protocol_version: number
  readonly org_id: string
  readonly project: { readonly id: string; readonly external_ref?: string }
  readonly trigger: { readonly kind: string }
  readonly refs: readonly { readonly selector: string; readonly known_digest?: string }[]
}
export interface TestResolver {
  readonly receiver: Receiver
  readonly url: string
  calls(): readonly Asked[]
  /** Makes the resolver return this entry for every selector of every call. */
  entry(entry: unknown): void
  /** Sets the response to all calls. */
  answer(how: Receiver['answer']): void
}

/** Returns an entry with an agent that answers every message with the entry's digest. */
export const saying = (digest: string, more: object = {}) => ({
  digest,
  value: { agent: { instructions: `script:\n  - say: ${digest}`, ...more } },
})

export async function startResolver(): Promise<TestResolver> {
  const at = await receiver((listener) => createServer({ cert, key }, listener), 'https')
  const answer: TestResolver['answer'] = (how) => {
    at.answer = how
  }
  return {
    receiver: at,
    url: at.url,
    calls: () => at.deliveries.map(({ body }) => body as unknown as Asked),
    answer,
    entry: (entry) =>
      answer((delivery, res) => {
        const { refs } = delivery.body as unknown as Asked
        const resolved = Object.fromEntries(refs.map(({ selector }) => [selector, entry]))
        json({ protocol_version: 1, resolved })(delivery, res)
      }),
  }
}
