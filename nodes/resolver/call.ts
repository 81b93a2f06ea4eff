/**
 * Makes one call to the endpoint of a resolver, and interprets the response. The address is checked
 * for every call, and the connection goes to the checked address.
 */
import type { ResolverQuestion, World } from '../../gateway/ports.ts'
import {
  type CalloutOutcome,
  entryOf,
  MAX_ANSWER_BYTES,
  requestOf,
  type TriggerKind,
} from '../../protocol/resolver/callout.ts'
import { openedUrl } from '../executor/open-url.ts'
import type { Failed, Post } from '../outbound/post.ts'

interface Calling {
  readonly post: Post
  readonly unlock: World['unlock']
  /** The brand in the names of headers. */
  readonly brand: string
  /** Id of the organization. */
  readonly organization: string
  readonly signal: AbortSignal
}
/**
 * The result of a call. `label` names the outcome in metrics. `detail` describes the failure for
 * the log only, because it may contain internal addresses.
 */
export interface CallResult {
  readonly outcome: CalloutOutcome
  readonly label: string
  readonly detail?: string
}

const failures: Readonly<Record<Failed['failed'], string>> = {
  refused: 'the address of the endpoint may not be called',
  too_large: 'the answer is too large',
  timeout: 'the endpoint did not answer in time',
  network: 'the endpoint could not be reached, or closed the connection',
  stopped: 'the node stopped during the call',
}
const unreachable = (label: string, reason: string, detail?: string): CallResult => ({
  outcome: { kind: 'unreachable', reason },
  label,
  ...(detail !== undefined && { detail }),
})

/**
 * Makes a call. Failures are returned, never thrown.
 * @param id identifies the call in headers and logs.
 */
export async function callResolver(
  { post, unlock, brand, organization, signal }: Calling,
  { configuration, project, selector }: ResolverQuestion,
  trigger: TriggerKind,
  known_digest: string | undefined,
  id: string,
): Promise<CallResult> {
  const { settings, token } = configuration
  const url = openedUrl({ unlock }, organization, settings.endpoint_url ?? '', configuration)
  const bearer = token && unlock(token.sealed, organization)
  if (url === undefined || (token && !bearer))
    return unreachable(
      'sealed',
      'the token or the URL was sealed by another installation; configure the resolver again',
    )
  const answer = await post({
    url,
    owner: 'resolver',
    schemes: ['https:'],
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json',
      'User-Agent': `${brand.toLowerCase()}-resolver/1`,
      [`X-${brand}-Delivery-Id`]: id,
      'X-Request-ID': id,
      ...(bearer && { Authorization: `Bearer ${Buffer.from(bearer).toString()}` }),
    },
    body: JSON.stringify(
      requestOf({
        org_id: organization,
        project,
        trigger,
        selector,
        ...(known_digest !== undefined && { known_digest }),
      }),
    ),
    timeout: settings.timeout_ms,
    most: MAX_ANSWER_BYTES,
    signal,
  })
  if ('failed' in answer) return unreachable(answer.failed, failures[answer.failed], answer.message)
  const { status, body } = answer
  if (status < 200 || status > 299)
    return unreachable('status', `the answer has the status ${status}`)
  const outcome = parsed(body, selector)
  return { outcome, label: outcome.kind === 'bundle' ? 'definition' : outcome.kind }
}

function parsed(body: Buffer, selector: string): CalloutOutcome {
  try {
    return entryOf(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)), selector)
  } catch {
    return { kind: 'invalid', reason: 'the body is not JSON in UTF-8' }
  }
}
