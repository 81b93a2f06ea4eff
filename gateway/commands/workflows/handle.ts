/** Determines the handle of a new workflow. */
import { slug } from '../../../protocol/naming.ts'
import type { World } from '../../ports.ts'

/** Returns the handle in the request, or a handle that is derived from the workflow's name. */
export function handleOf(
  { hash }: Pick<World, 'hash'>,
  body: Readonly<Record<string, unknown>>,
): string {
  if (typeof body['handle'] === 'string') return body['handle']
  const name = String(body['name'])
  return slug(name) || `workflow-${hash(name).slice(0, 8)}`
}
