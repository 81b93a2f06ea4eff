/**
 * Renders the page of an answer link as HTML. The page has no scripts, every control has a label,
 * and every control is reachable by keyboard. All text from interactions is escaped, and links lead
 * only to http and https addresses. Requests are handled in `answer.ts`. The page of device sign-in
 * uses the same layout.
 */
import { createHash } from 'node:crypto'
import { questionOf } from '../../../protocol/interactions/question.ts'
import type { Interaction, Question } from '../../../protocol/interactions/schema.ts'
import type { Answer } from '../../http/respond.ts'

const style = `:root{color-scheme:light dark;font:1rem/1.5 system-ui,sans-serif}
body{max-width:40rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.4rem;overflow-wrap:anywhere}
a{color:inherit}
.text,pre{white-space:pre-wrap;overflow-wrap:anywhere}
fieldset{border:1px solid;border-radius:.4rem;margin:1rem 0;padding:.75rem 1rem}
label.choice{display:block;padding:.3rem 0}
label.field{display:block;margin:1rem 0 .3rem}
textarea,input[type=text]{width:100%;box-sizing:border-box;font:inherit;padding:.5rem}
button{font:inherit;padding:.6rem 1.4rem;margin-top:1rem}
:focus-visible{outline:3px solid #1a6fd4;outline-offset:2px}
.note{opacity:.75;font-size:.9rem}
.fault{border-left:4px solid #c0262d;padding-left:.75rem;font-weight:600}`
const styleHash = createHash('sha256').update(style).digest('base64')
const policy =
  `default-src 'none'; style-src 'sha256-${styleHash}'; form-action 'self'; ` +
  "base-uri 'none'; frame-ancestors 'none'"
const headers = {
  'Content-Security-Policy': policy,
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex',
} as const

/** Escapes text for use in HTML elements and quoted attribute values. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

/**
 * Creates an HTML page.
 * @param title plain text, which is escaped here.
 * @param content HTML, in which all text must already be escaped.
 */
export const pageOf = (status: number, title: string, content: string): Answer => ({
  status,
  headers,
  type: 'text/html; charset=utf-8',
  text: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
${content}
</main>
</body>
</html>
`,
})

/** Returns a page that only shows a message. */
export const noticePage = (status: number, title: string, text: string): Answer =>
  pageOf(status, title, `<p class="text">${escapeHtml(text)}</p>`)

/**
 * Returns the page with the form of an interaction. The status is 400 when `fault` is given,
 * otherwise 200.
 * @param who name of the answering person.
 * @param fault the reason why the last attempt was rejected.
 * @param given the fields of the last attempt, which the form shows again.
 */
export function formPage(
  interaction: Interaction,
  who: string,
  fault?: string,
  given?: URLSearchParams,
): Answer {
  const { title, description, context, spec, expires_at, review_feedback } = interaction
  return pageOf(
    fault === undefined ? 200 : 400,
    title,
    [
      ...(fault === undefined ? [] : [`<p class="fault" role="alert">${escapeHtml(fault)}</p>`]),
      ...(description ? [`<p class="text">${escapeHtml(description)}</p>`] : []),
      ...(review_feedback
        ? [`<h2>Requested changes</h2>\n<p class="text">${escapeHtml(review_feedback)}</p>`]
        : []),
      ...references(interaction),
      ...(context
        ? [
            `<details><summary>Details</summary><pre>${escapeHtml(JSON.stringify(context, null, 2))}</pre></details>`,
          ]
        : []),
      '<form method="post" accept-charset="utf-8">',
      control(
        given ? filled(questionOf(interaction), given.getAll('value')) : questionOf(interaction),
        spec !== undefined,
      ),
      '<label class="field" for="comment">Comment (optional)</label>\n' +
        '<textarea id="comment" name="comment" rows="3" maxlength="16384">\n' +
        `${escapeHtml(given?.get('comment') ?? '')}</textarea>`,
      '<button type="submit">Send the answer</button>',
      '</form>',
      `<p class="note">You answer as ${escapeHtml(who)}. This link works once` +
        `${expires_at === undefined ? '' : `, until ${escapeHtml(minuteOf(expires_at))}`}.</p>`,
    ].join('\n'),
  )
}

/** Formats a time, rounded down to the minute, such as `2031-02-03 04:05 UTC`. */
export const minuteOf = (time: string): string => `${time.slice(0, 16).replace('T', ' ')} UTC`

/** Returns the question with its defaults replaced by the fields of the last attempt. */
function filled(question: Question, given: readonly string[]): Question {
  const { default_value: _, default_confirmed: __, ...rest } = question
  const [first] = given
  switch (question.mode) {
    case 'confirm':
      return first === undefined ? rest : { ...rest, default_confirmed: first === 'true' }
    case 'select':
      return first === undefined ? rest : { ...rest, default_value: first }
    case 'multi_select':
      return { ...rest, default_values: [...given] }
    case 'input':
      return { ...rest, default_text: first ?? '' }
  }
}

function references({ subject, references: others = [] }: Interaction): string[] {
  const all = [...(subject ? [subject] : []), ...others]
  if (all.length === 0) return []
  const item = ({ kind, url, label, entity_type, entity_id }: (typeof all)[number]): string => {
    const text = escapeHtml(label ?? url ?? `${entity_type} ${entity_id}`)
    return kind === 'external_url' && /^https?:\/\//i.test(url ?? '')
      ? `<li><a href="${escapeHtml(url ?? '')}" rel="noreferrer noopener">${text}</a></li>`
      : `<li>${text}</li>`
  }
  return [`<ul>${all.map(item).join('')}</ul>`]
}

/** Returns a radio button, of which one must be selected, or a checkbox. */
const choice = (
  type: 'radio' | 'checkbox',
  {
    value,
    label,
    description,
  }: { readonly value: string; readonly label: string; readonly description?: string },
  checked: boolean,
): string =>
  `<label class="choice"><input type="${type}" name="value" value="${escapeHtml(value)}"` +
  `${checked ? ' checked' : ''}${type === 'radio' ? ' required' : ''}> ${escapeHtml(label)}` +
  `${description ? ` <span class="note">${escapeHtml(description)}</span>` : ''}</label>`

function control(question: Question, asked: boolean): string {
  const {
    mode,
    options = [],
    default_value,
    default_values = [],
    default_text = '',
    default_confirmed,
    placeholder,
    multiline,
  } = question
  const group = (items: string[]) =>
    `<fieldset>\n<legend>Your answer</legend>\n${items.join('\n')}\n</fieldset>`
  switch (mode) {
    case 'confirm':
      return group([
        choice('radio', { value: 'true', label: 'Yes' }, default_confirmed === true),
        choice('radio', { value: 'false', label: 'No' }, default_confirmed === false),
      ])
    case 'select':
      return group(options.map((option) => choice('radio', option, option.value === default_value)))
    case 'multi_select':
      return group(
        options.map((option) => choice('checkbox', option, default_values.includes(option.value))),
      )
    case 'input': {
      const shared =
        'id="value" name="value"' +
        (placeholder ? ` placeholder="${escapeHtml(placeholder)}"` : '') +
        (asked ? '' : ' required')
      const field = multiline
        ? `<textarea ${shared} rows="6">\n${escapeHtml(default_text)}</textarea>`
        : `<input type="text" ${shared} value="${escapeHtml(default_text)}">`
      return `<label class="field" for="value">Your answer</label>\n${field}`
    }
  }
}
