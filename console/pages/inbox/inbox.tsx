/**
 * The inbox: a list of questions, and one of them in detail. The filter and the id of the question
 * are in the URL.
 */
import { useRef } from 'preact/hooks'
import {
  type Interaction,
  type InteractionKind,
  interactionStatuses,
} from '../../../protocol/interactions/schema.ts'
import type { CallInput } from '../../api/client.ts'
import { type Listing, useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { SelectField } from '../../design/field.tsx'
import { MoreButton } from '../../design/listed.tsx'
import { Empty, Failure, Skeleton } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { usePeople } from '../../people/people.ts'
import { Who } from '../../people/who.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { badges } from '../../shell/badges.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { useCommands } from '../../shell/shortcuts.ts'
import { formatNumber } from '../../text/format.ts'
import { isOpen, partOf, stepTo } from './asked.ts'
import { Detail } from './detail.tsx'
import { Deadline, StatusBadge } from './parts.tsx'
import { inboxText as text } from './text.ts'

type Input = CallInput<'interaction.list'>
const OPEN = ['pending', 'in_review'] as const
const FILTERS: Readonly<
  Record<string, { readonly label: string; readonly input: Partial<Input> }>
> = {
  mine: { label: text.mine, input: { inbox: true, status: [...OPEN] } },
  open: { label: text.open, input: { status: [...OPEN] } },
  answered: { label: text.answered, input: { status: ['completed'] } },
  expired: { label: text.expired, input: { status: ['expired', 'cancelled'] } },
  all: { label: text.all, input: { status: [...interactionStatuses] } },
}
const KINDS: readonly InteractionKind[] = [
  'request_approval',
  'request_information',
  'request_review',
  'assign_work',
]

const linkId = (id: string): string => `question-${id}`

function Item({
  project,
  interaction,
  selected,
}: {
  readonly project: string
  readonly interaction: Interaction
  readonly selected: boolean
}) {
  const { me, mine } = usePeople(project)
  const { id, title, created_by, created_at, expires_at, kind } = interaction
  const query = new URLSearchParams(currentUrl.value.query)
  query.set('id', id)
  const part = partOf(interaction, me, mine)
  return (
    <li>
      <a
        id={linkId(id)}
        class={selected ? 'question-item selected' : 'question-item'}
        aria-current={selected ? 'true' : undefined}
        href={`?${query}`}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return
          event.preventDefault()
          open(id)
          // `detail` is 0 if Enter was pressed. Enter also moves the focus to the answer, whereas a
          // mouse click only selects the question.
          if (event.detail === 0) focusAnswer()
        }}
      >
        <span class="row apart one-line">
          <span class="soft small">{text[kind]}</span>
          <span class="soft small">
            <Time at={created_at} relative />
          </span>
        </span>
        <span class="question-name user-text">{title}</span>
        <span class="row small">
          {created_by && (
            <span class="soft clip grow">
              <Who project={project} id={created_by} />
            </span>
          )}
          {part === 'answered' && <span class="badge good">{text.youAnswered}</span>}
          {part === 'review' && <span class="badge info">{text.yourReview}</span>}
          {(!isOpen(interaction) || part === 'none') && <StatusBadge status={interaction.status} />}
          {isOpen(interaction) && expires_at && <Deadline at={expires_at} />}
        </span>
      </a>
    </li>
  )
}

/** Opens a question. The first one gets its own history entry, so that Back shows the list. */
const open = (id: string): void => setQuery({ id }, { push: !currentUrl.peek().query.get('id') })

/** Focuses the first control of the answer, after waiting at most `tries` frames for the form. */
function focusAnswer(tries = 20): void {
  const form = document.querySelector('.answer-form')
  const control =
    form?.querySelector<HTMLElement>('input:checked, input, textarea') ??
    document.querySelector<HTMLElement>('.question-title')
  if (control) control.focus()
  else if (tries > 0) requestAnimationFrame(() => focusAnswer(tries - 1))
}

function Questions({
  project,
  list,
  selected,
  filter,
}: {
  readonly project: string
  readonly list: Listing<Interaction>
  readonly selected: string
  readonly filter: string
}) {
  const { items, loading, error } = list.state.value
  if (items.length === 0)
    return (
      <div class="inbox-list">
        {error && <Failure error={error} retry={list.reload} />}
        {loading ? (
          <Skeleton lines={6} />
        ) : (
          !error && (
            <Empty icon="inbox" title={filter === 'mine' ? text.nothingMine : text.nothing}>
              <p>{filter === 'mine' ? text.nothingMineHint : text.nothingHint}</p>
              {filter === 'mine' && (
                <Button onClick={() => setQuery({ show: 'open' })}>{text.showOpen}</Button>
              )}
            </Empty>
          )
        )}
      </div>
    )
  return (
    <nav class="inbox-list" aria-label={text.questions}>
      {error && <Failure error={error} retry={list.reload} />}
      <ul>
        {items.map((one) => (
          <Item key={one.id} project={project} interaction={one} selected={one.id === selected} />
        ))}
      </ul>
      <MoreButton of={list} />
    </nav>
  )
}

export default function InboxPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const { query } = currentUrl.value
  const wanted = query.get('show') ?? 'mine'
  const filter = Object.hasOwn(FILTERS, wanted) ? wanted : 'mine'
  const kind = KINDS.find((one) => one === query.get('kind'))
  const selected = query.get('id') ?? ''
  const input: Input = {
    project,
    limit: 50,
    ...FILTERS[filter]?.input,
    ...(kind && { kind: [kind] }),
  }
  const list = useList('interaction.list', input, { kinds: ['interaction'] })
  const ids = list.state.value.items.map(({ id }) => id)
  const at = useRef(0)
  const index = ids.indexOf(selected)
  if (index >= 0) at.current = index
  const step = (by: 1 | -1): void => {
    const id = stepTo(ids, selected === '' ? undefined : selected, at.current, by)
    if (id === undefined) return
    open(id)
    requestAnimationFrame(() => {
      const link = document.getElementById(linkId(id))
      link?.focus()
      link?.scrollIntoView({ block: 'nearest' })
    })
  }
  const back = (): void => {
    setQuery({ id: '' })
    requestAnimationFrame(() => {
      const link = document.getElementById(linkId(selected))
      ;(link ?? document.querySelector<HTMLElement>('.page-head h1'))?.focus()
    })
  }
  useCommands(
    [
      { id: 'next', label: text.next, keys: 'j', run: () => step(1) },
      { id: 'previous', label: text.previous, keys: 'k', run: () => step(-1) },
      ...(selected === ''
        ? []
        : [
            { id: 'answer', label: text.openFirst, keys: 'o', run: () => focusAnswer() },
            { id: 'back', label: text.back, keys: 'Escape', run: back },
          ]),
    ],
    [ids.join(), selected],
  )
  const waiting = badges.value['/p/:project/inbox'] ?? 0
  return (
    <Page
      full
      title={waiting > 0 ? text.titleWith(formatNumber(waiting)) : text.title}
      heading={text.title}
      actions={
        <>
          <SelectField
            label={text.filter}
            unlabelled
            value={filter}
            choices={Object.entries(FILTERS).map(([value, { label }]) => ({ value, label }))}
            onValue={(value) => setQuery({ show: value === 'mine' ? '' : value, id: '' })}
          />
          <SelectField
            label={text.kind}
            unlabelled
            value={kind ?? ''}
            choices={[
              { value: '', label: text.anyKind },
              ...KINDS.map((value) => ({ value, label: text[value] })),
            ]}
            onValue={(value) => setQuery({ kind: value, id: '' })}
          />
          <CopyCall name="interaction.list" input={input} />
        </>
      }
    >
      <div class={selected === '' ? 'inbox' : 'inbox selected'}>
        <Questions project={project} list={list} selected={selected} filter={filter} />
        {selected === '' ? (
          <div class="inbox-detail none">
            <Empty icon="inbox" title={text.chooseOne}>
              <p>{text.chooseHint}</p>
            </Empty>
          </div>
        ) : (
          <Detail key={selected} project={project} id={selected} onBack={back} />
        )}
      </div>
    </Page>
  )
}
