/**
 * The page on which a person signs a device in. It first shows a form for the user code, and then
 * the device's request, with a form for the person's own credential and decision. There is no
 * browser session and no cookie, so no other site can answer on a person's behalf.
 */
import type { DeviceRequest } from '../../../protocol/access/device-rows.ts'
import { errors, isRefusal, isServiceFault, type Refusal } from '../../../protocol/errors.ts'
import type { Edge } from '../../call.ts'
import { originOf } from '../../http/origin.ts'
import type { Answer } from '../../http/respond.ts'
import { organizationAt, sendNew } from '../../http/send.ts'
import { escapeHtml, minuteOf, noticePage, pageOf } from '../../pages/answer/page.ts'
import type { Handler } from '../../serve.ts'
import { parseCredential } from '../keys.ts'
import { countRefusal, refuseExceeded } from '../rate.ts'
import { answererOf, findDevice } from './answer.ts'

const TITLE = 'Sign in a device'
const unavailable = noticePage(
  503,
  'Please try again',
  'The service is unavailable right now. Reload the page in a moment.',
)

const tooMany = noticePage(429, 'Please wait', 'Too many requests. Reload the page in a minute.')

const faultOf = (fault: string | undefined): string =>
  fault === undefined ? '' : `<p class="fault" role="alert">${escapeHtml(fault)}</p>`
const codeForm = (status: number, fault?: string): Answer =>
  pageOf(
    status,
    TITLE,
    `${faultOf(fault)}
<form method="get">
<label class="field" for="user_code">Code that the device shows</label>
<input type="text" id="user_code" name="user_code" required maxlength="32"
 autocomplete="off" autocapitalize="characters" spellcheck="false">
<button type="submit">Continue</button>
</form>`,
  )
const decisionForm = (
  status: number,
  user_code: string,
  { label, client, address, project_handle, expires_at }: DeviceRequest,
  fault?: string,
): Answer =>
  pageOf(
    status,
    TITLE,
    `${faultOf(fault)}
<p class="text">${escapeHtml(label)} requests access to act as you, with all your permissions. \
Allow it only if you started this sign-in and the device shows the code ${escapeHtml(user_code)}.</p>
<ul>
${client === undefined ? '' : `<li>Program: ${escapeHtml(client)}</li>`}
<li>Address: ${escapeHtml(address)}</li>
${project_handle === undefined ? '' : `<li>Project: ${escapeHtml(project_handle)}</li>`}
</ul>
<form method="post" accept-charset="utf-8">
<input type="hidden" name="user_code" value="${escapeHtml(user_code)}">
<label class="field" for="credential">Your personal token</label>
<input type="password" id="credential" name="credential" required maxlength="512" autocomplete="current-password">
<button type="submit" name="decision" value="allow">Allow</button>
<button type="submit" name="decision" value="deny">Deny</button>
</form>
<p class="note">The code is valid until ${escapeHtml(minuteOf(expires_at))}. \
You can revoke this access at any time.</p>`,
  )

/**
 * Handles GET: shows the form for the user code, the form for the decision, or the earlier
 * decision.
 */
export const showDevice =
  (edge: Edge): Handler =>
  async (incoming) => {
    const address = incoming.sender()
    const code = new URLSearchParams(incoming.query).get('user_code')?.trim() ?? ''
    if (code === '') return codeForm(200)
    if (!(await edge.becomesFresh())) return unavailable
    const found = await findLimited(edge, code, address)
    if ('status' in found) return found
    return found.request.status === 'pending'
      ? decisionForm(200, found.user_code, found.request)
      : done(found.request.status)
  }
/**
 * Finds the device request with the given user code. Returns an error page when the request is not
 * found or cannot be read, or when the rate limit of the address or of the user code is exceeded.
 */
async function findLimited(
  edge: Edge,
  code: string,
  address: string,
): Promise<Exclude<Awaited<ReturnType<typeof findDevice>>, Refusal> | Answer> {
  if (await refuseExceeded(edge.limits, address)) return tooMany
  const found = await findDevice(edge, code, address)
  if (isRefusal(found)) return unknownCode(found)
  const limited = await edge.limits?.(`device:${found.user_code}`)
  return limited?.refused ? tooMany : found
}
const unknownCode = (refusal: Refusal): Answer =>
  isServiceFault(refusal) ? unavailable : codeForm(errors[refusal.refused].status, textOf(refusal))
const textOf = ({ refused, message }: Refusal): string => message ?? errors[refused].message
const done = (status: DeviceRequest['status']): Answer =>
  status === 'approved'
    ? noticePage(
        200,
        'The device is signed in',
        'You can close this page and continue on the device.',
      )
    : noticePage(
        200,
        'The device was denied',
        'The device gets no access. You can close this page.',
      )

/** Handles POST: sends the person's decision to the organization's actor. */
export const submitDevice =
  (edge: Edge): Handler =>
  async (incoming) => {
    const { world, authentication, limits } = edge
    if (incoming.broken) return codeForm(400, 'The form is invalid.')
    if (!(await edge.becomesFresh())) return unavailable
    const fields = new URLSearchParams(incoming.body)
    const found = await findLimited(edge, fields.get('user_code') ?? '', incoming.ip)
    if ('status' in found) return found
    const { user_code, request } = found
    const decision = fields.get('decision')
    if (decision !== 'allow' && decision !== 'deny')
      return decisionForm(400, user_code, request, 'Choose Allow or Deny.')
    const caller = await authentication.signIn(
      parseCredential(fields.get('credential')?.trim() ?? ''),
    )
    if (isRefusal(caller)) {
      if (isServiceFault(caller)) return unavailable
      const refused = await countRefusal(limits, incoming.ip, caller)
      return decisionForm(
        errors[refused.refused].status,
        user_code,
        request,
        refused === caller ? 'This token is not valid.' : textOf(refused),
      )
    }
    const answerer = await answererOf(edge, caller)
    if (isRefusal(answerer)) {
      const { status } = errors[answerer.refused]
      return status >= 500
        ? unavailable
        : decisionForm(status, user_code, request, textOf(answerer))
    }
    const outcome = await sendNew(
      world,
      organizationAt(world),
      'device.answer',
      { ...answerer, user_code, decision },
      originOf(world, caller, incoming),
    )
    if (!isRefusal(outcome)) return done(outcome.reply.status)
    const { status } = errors[outcome.refused]
    return status >= 500 ? unavailable : decisionForm(status, user_code, request, textOf(outcome))
  }
