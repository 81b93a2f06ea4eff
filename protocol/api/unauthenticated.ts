/**
 * Operations that need no credential, and so are no rows of the table: their handlers in the gateway check what
 * authenticates each request. This file states their routes and shapes; the API reference lists them with the rows.
 */
import { Type, type TSchema } from 'typebox'
import { Closed, Open } from '../common.ts'
import type { Row, Shape } from '../contract.ts'
import { EventAccepted } from './events.ts'

/** An operation without a credential. */
export interface Unauthenticated extends Pick<Row, 'verb' | 'route'> {
  readonly shape: Omit<Shape, 'permission'>
  /** Headers that the request may have, by name. @param brand header brand. */
  readonly headers?: (brand: string) => Readonly<Record<string, TSchema>>
}

export const unauthenticated = {
  'trigger.http': {
    verb: 'command',
    route: 'POST /triggers/http/:http_handle',
    shape: {
      summary: 'Fire an HTTP trigger of a loop; its handle and signature authenticate the request',
      tag: 'loops',
      query: Closed({
        idempotency_key: Type.Optional(
          Type.String({
            maxLength: 255,
            description:
              'A repeat within 24 hours is the same source event; takes precedence over the header X-Idempotency-Key',
          }),
        ),
      }),
      body: Open,
      bodyOptional: true,
      reply: EventAccepted,
      status: 202,
      limit: 262_144,
      errors: [
        'invalid_signature',
        'not_found',
        'loop_paused',
        'loop_not_runnable',
        'payload_too_large',
      ],
    },
    headers: (brand) => ({
      'X-Idempotency-Key': Type.String({
        maxLength: 255,
        description: 'A repeat within 24 hours is the same source event',
      }),
      [`X-${brand}-Signature`]: Type.String({
        pattern: '^sha256=[0-9A-Fa-f]{64}$',
        description:
          'HMAC-SHA256 of the body in hex, by the secret of the trigger; required when it has one',
      }),
    }),
  },
} as const satisfies Readonly<Record<string, Unauthenticated>>
