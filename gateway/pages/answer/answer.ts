/**
 * Handlers of answer links. A link is a credential for one answer by one person to one interaction,
 * so the person need not sign in. The interaction's actor decides whether to accept the answer, as
 * it does for any other answer. The HTML is in `page.ts`, and the format of links is in `token.ts`.
 */
import { activePrincipal, principalOf } from '../../../protocol/access/directory.ts'
import type { Credential, Principal } from '../../../protocol/entry.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { questionOf } from '../../../protocol/interactions/question.ts'
import { roundOf } from '../../../protocol/interactions/resolve.ts'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { Edge } from '../../call.ts'
import { originOf } from '../../http/origin.ts'
import type { Incoming } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import type { Handler } from '../../serve.ts'
import { formPage, noticePage } from './page.ts'
import { type LinkClaim, readToken } from './token.ts'

/** Maximum size of a form in bytes. */
export const MAX_FORM_BYTES = 65_536
/** Maximum length of a comment in characters. */
const MAX_COMMENT_LENGTH = 16_384

interface Opened {
  readonly claim: LinkClaim
  readonly record: Interaction
  readonly principal: Principal
  readonly credential: Credential
}

/** Handles GET: shows the form, or explains why the link cannot be used. */
export const showForm =
  (edge: Edge): Handler =>
  async (incoming) => {
    const opened = await open(edge, incoming)
    return 'status' in opened ? opened : (over(opened) ?? formPage(opened.record, nameOf(opened)))
  }

/** Handles POST: sends the form's answer to the interaction. */
export const submitForm =
  (edge: Edge): Handler =>
  async (incoming) => {
    const opened = await open(edge, incoming)
    if ('status' in opened) return opened
    const { claim, record } = opened
    const who = nameOf(opened)
    if (incoming.broken === 'too_large') return formPage(record, who, 'The answer is too long.')
    if (incoming.broken) return formPage(record, who, 'The answer is invalid.')
    const text = incoming.body
    const fields = new URLSearchParams(text)
    const value = chosen(record, fields)
    if (value === undefined)
      return over(opened) ?? formPage(record, who, 'Please choose an answer.', fields)
    const comment = textOf(fields.get('comment'))?.trim()
    if (comment !== undefined && comment.length > MAX_COMMENT_LENGTH)
      return formPage(record, who, 'The comment is too long.', fields)
    const { world } = edge
    const origin = originOf(world, opened, incoming)
    const outcome = await world.command({
      project: claim.project,
      kind: 'interaction',
      id: claim.interaction,
      name: 'interaction.respond',
      origin,
      // Sending the same form again repeats the command, so both requests count as one answer.
      command_id: world.hash(`answer\n${incoming.slots[0] ?? ''}\n${text}`).slice(0, 40),
      input: { value, ...(comment && { comment }), roles: [], link: { round: claim.round } },
    })
    if (!isRefusal(outcome))
      return noticePage(200, 'Thank you', 'Your answer was received. You can close this page.')
    return refusedAs(edge, outcome, opened, fields)
  }

const nameOf = ({ principal, claim }: Opened): string => principal.name ?? claim.target

async function refusedAs(
  edge: Edge,
  refusal: Refusal,
  opened: Opened,
  fields: URLSearchParams,
): Promise<Answer> {
  if (refusal.refused === 'bad_request' || refusal.details?.['limit'] !== undefined)
    return formPage(
      opened.record,
      nameOf(opened),
      refusal.message ?? 'The answer was not accepted.',
      fields,
    )
  if (refusal.refused === 'service_unavailable' || refusal.refused === 'internal')
    return unavailable
  const record = (await read(edge, opened.claim)) ?? opened.record
  return (
    ('refused' in record ? undefined : over({ ...opened, record })) ??
    gone('This question no longer accepts answers.')
  )
}

const unavailable: Answer = {
  ...noticePage(
    503,
    'Please try again',
    'The service cannot accept your answer right now. Reload the page in a moment.',
  ),
}
const gone = (text: string): Answer => noticePage(410, 'This link is no longer valid', text)
const read = async (
  { world }: Edge,
  { project, interaction }: LinkClaim,
): Promise<Interaction | null | Refusal> =>
  await world.ask({ project, kind: 'interaction', id: interaction }, 'get', {})

async function open(edge: Edge, incoming: Incoming): Promise<Opened | Answer> {
  const { world, limits } = edge
  const token = incoming.slots[0] ?? ''
  const claim = readToken(world, token)
  if (!claim)
    return noticePage(
      404,
      'This link does not exist',
      'Check that you copied the complete address, or ask for a new link.',
    )
  const credential: Credential = {
    type: 'internal',
    id: `answer_link:${world.hash(token).slice(0, 24)}`,
  }
  const limited = await limits?.(credential.id, world.organization())
  if (limited?.refused)
    return noticePage(429, 'Please wait', 'Too many requests. Reload the page in a minute.')
  if (!(await edge.becomesFresh())) return unavailable
  if (claim.expires !== undefined && claim.expires <= world.now())
    return gone('The time to answer has expired.')
  const principal = await speakerOf(edge, claim)
  if (isRefusal(principal)) return unavailable
  if (!principal)
    return gone('The person for whom this link was created can no longer answer here.')
  const record = await read(edge, claim)
  if (isRefusal(record)) return unavailable
  return record ? { claim, record, principal, credential } : gone('The question was deleted.')
}

/**
 * Returns the principal for whom a link was created, or undefined when the principal is no longer
 * active or the project was deleted.
 */
async function speakerOf(
  { directory }: Edge,
  { project, target }: LinkClaim,
): Promise<Principal | undefined | Refusal> {
  const organization = await directory.organization()
  if (isRefusal(organization)) return organization
  const known = getOwn(organization.projects, project)
  if (!known || known.deleted) return undefined
  const home = await directory.project(project)
  if (isRefusal(home)) return home
  const party = activePrincipal(home, organization, target)
  return party && principalOf(party)
}

/** Returns the page that explains why a link is no longer valid, or undefined while it is valid. */
function over({ claim, record }: Pick<Opened, 'claim' | 'record'>): Answer | undefined {
  if (
    record.responses.some(
      ({ responder_user_id, attempt = 1 }) =>
        responder_user_id === claim.target && attempt === claim.round,
    )
  )
    return gone('Your answer was already received. Thank you.')
  switch (record.status) {
    case 'completed':
      return gone('The question has been answered.')
    case 'cancelled':
      return gone('The question was withdrawn.')
    case 'expired':
      return gone('The time to answer has expired.')
    case 'in_review':
      return gone('The answers are being reviewed.')
    case 'pending':
      return roundOf(record) === claim.round
        ? undefined
        : gone('A new answer was requested; use the newer link.')
  }
}

/**
 * Restores the line breaks of a text, which forms send as CRLF (HTML Standard, "Constructing the
 * entry list"). Returns undefined for an absent field.
 */
const textOf = (field: string | null | undefined): string | undefined =>
  field?.replaceAll('\r\n', '\n')

/**
 * Returns the value of the answer in a form, or undefined when the form contains no value. The
 * value of a multiple selection is a list, which may be empty. The interaction's actor decides
 * whether the value is a valid answer.
 */
function chosen(record: Interaction, fields: URLSearchParams): unknown {
  const given = fields.getAll('value')
  switch (questionOf(record).mode) {
    case 'confirm':
      return given[0] === 'true' ? true : given[0] === 'false' ? false : undefined
    case 'multi_select':
      return given
    case 'select':
      return given[0]
    case 'input':
      return textOf(given[0])
  }
}
