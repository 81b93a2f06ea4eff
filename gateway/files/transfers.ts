/**
 * Handles the rows that transfer bytes (`blob`), and defines the route of signed URLs. Also
 * determines, for every row, the maximum body size and the additional headers of its requests.
 */
import { unauthenticated } from '../../protocol/access/unauthenticated-rows.ts'
import { isConditional } from '../../protocol/conditional.ts'
import { routeOf } from '../../protocol/contract.ts'
import type { Refusal } from '../../protocol/errors.ts'
import { type Call, type Edge, MAX_BODY_BYTES, operationOf, type Routed } from '../call.ts'
import { downloadArtifact, sendArtifact } from '../commands/artifacts/read.ts'
import {
  leaseHeaders,
  MAX_FORM_OVERHEAD_BYTES,
  receiveArtifact,
} from '../commands/artifacts/upload.ts'
import { CONDITION_HEADERS } from '../http/conditional.ts'
import type { Answer, Exchange } from '../http/respond.ts'
import type { GatewaySettings } from '../ports.ts'
import type { Route } from '../serve.ts'
import { sendFile } from '../sessions/attach.ts'
import { CONTENT_HEADERS } from './content.ts'
import { createSemaphore, type Semaphore } from './semaphore.ts'

/** Maximum total size in bytes of the files and large bodies that a gateway holds in memory. */
const MAX_BODIES_BYTES = 64 * 1_048_576
/** Maximum total size in bytes of the large bodies of requests without credentials. */
const MAX_PUBLIC_BODIES_BYTES = 32 * 1_048_576
/** Creates the semaphore for files and large bodies of known callers. Its units are bytes. */
export const createBodyMemory = (): Semaphore => createSemaphore(MAX_BODIES_BYTES)
/** Creates the semaphore for large bodies of requests without credentials. Its units are bytes. */
export const createPublicBodyMemory = (): Semaphore => createSemaphore(MAX_PUBLIC_BODIES_BYTES)

type Transfer = (edge: Edge, call: Call, exchange: Exchange) => Promise<Answer | Refusal>
const transfers: Readonly<Record<string, Transfer>> = {
  'session.attachment': sendFile,
  'artifact.create': receiveArtifact,
  'artifact.content': sendArtifact,
}

/** Performs the transfer that a call to a `blob` row requests. */
export function transfer(edge: Edge, call: Call, exchange: Exchange): Promise<Answer | Refusal> {
  const perform = transfers[operationOf(call)]
  if (!perform) throw new Error(`${call.name} has no transfer`)
  return perform(edge, call, exchange)
}

/**
 * Returns how requests for a row are received: the maximum body size, and the additional headers.
 */
export function receptionOf(
  { row }: Pick<Routed, 'row'>,
  { brand, artifacts }: GatewaySettings,
): Pick<Route, 'limit' | 'further'> {
  const { verb, shape } = row
  const further =
    shape.upload === 'streamed'
      ? leaseHeaders(brand)
      : verb === 'blob'
        ? CONTENT_HEADERS
        : verb === 'query' && shape.body
          ? ['host']
          : isConditional(row)
            ? CONDITION_HEADERS
            : undefined
  return {
    limit:
      shape.upload === 'streamed'
        ? artifacts.max_bytes + MAX_FORM_OVERHEAD_BYTES
        : (shape.limit ?? MAX_BODY_BYTES),
    ...(further && { further }),
  }
}

/** Returns the path and the route of signed URLs. */
export const downloadRoute = (edge: Edge) =>
  [
    `/v1${routeOf(unauthenticated['artifact.download']).path}`,
    {
      operation: 'artifact.download',
      purpose: 'other',
      method: 'GET',
      slots: 1,
      limit: 0,
      further: CONTENT_HEADERS,
      handler: downloadArtifact(edge),
    },
  ] as const
