/** The list of sessions: search, filters, and starting a session. */
import { useMemo } from 'preact/hooks'
import type { CallReply } from '../../api/client.ts'
import { useList } from '../../api/query.ts'
import { Button, LinkButton } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { SearchField, SelectField } from '../../design/field.tsx'
import { EmptyCard, Listed } from '../../design/listed.tsx'
import { Badge } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { formatNumber } from '../../text/format.ts'
import { useAgents } from './agents.ts'
import { NewSession } from './new-session.tsx'
import { sessionsText as text } from './text.ts'

type Session = CallReply<'session.list'>['items'][number]

const HOUR_MS = 3_600_000
const periods: Readonly<Record<string, number>> = {
  hour: HOUR_MS,
  day: 24 * HOUR_MS,
  week: 168 * HOUR_MS,
}
const PERIODS = [
  { value: '', label: text.anyTime },
  { value: 'hour', label: text.lastHour },
  { value: 'day', label: text.lastDay },
  { value: 'week', label: text.lastWeek },
]
const STATES = [
  { value: '', label: text.active },
  { value: 'archived', label: text.archived },
  { value: 'all', label: text.allStates },
]
const SCOPES = [
  { value: '', label: text.anyScope },
  { value: 'agent', label: text.scopeAgent },
  { value: 'loop', label: text.scopeLoop },
]
const FILTERS = ['q', 'agent', 'state', 'scope', 'since'] as const
const PAGE_SIZE = 50

/** Returns the displayed name of a session: its title, or its key. */
export const nameOf = ({ title, session_key }: Pick<Session, 'title' | 'session_key'>): string =>
  title || session_key

/**
 * Returns the filters in the URL, the input of `session.list` for them, and whether any filter is
 * set.
 */
function useFilters(project: string) {
  const { query } = currentUrl.value
  const value = (name: (typeof FILTERS)[number]): string => query.get(name) ?? ''
  const span = periods[value('since')]
  // The start of a period is computed only when the period is chosen, so an unchanged filter gives
  // an unchanged request.
  const since = useMemo(
    () => (span === undefined ? undefined : new Date(Date.now() - span).toISOString()),
    [span],
  )
  const state = value('state')
  const input = {
    project,
    limit: PAGE_SIZE,
    ...(state === 'archived' && { status: ['archived' as const] }),
    ...(state === 'all' && { status: ['active' as const, 'archived' as const] }),
    ...(value('agent') !== '' && { agent_id: value('agent') }),
    ...((value('scope') === 'agent' || value('scope') === 'loop') && {
      scope: value('scope') as 'agent' | 'loop',
    }),
    ...(value('q').trim() !== '' && { query: value('q').trim() }),
    ...(since !== undefined && { since }),
  }
  return { value, input, filtered: FILTERS.some((name) => value(name) !== '') }
}

const Row = ({
  session,
  base,
  agent,
}: {
  readonly session: Session
  readonly base: string
  readonly agent: string
}) => (
  <tr>
    <td>
      <a {...rowLink} class="user-text row-link" href={`${base}/sessions/${session.id}`}>
        {nameOf(session)}
      </a>{' '}
      {session.visibility === 'private' && <Badge>{text.private}</Badge>}
      {session.status !== 'active' && (
        <Badge>{session.status === 'archived' ? text.archived : text.deleted}</Badge>
      )}
    </td>
    <td>
      <a class="user-text" href={`${base}/agents/${session.agent_id}`}>
        {agent}
      </a>
    </td>
    <td class="number wide-cell">{formatNumber(session.message_count)}</td>
    <td class="number wide-cell">
      {formatNumber(session.token_input_total + session.token_output_total)}
    </td>
    <td>
      {session.last_message_at ? (
        <Time at={session.last_message_at} relative />
      ) : (
        <span class="soft">{text.never}</span>
      )}
    </td>
  </tr>
)

export default function SessionsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}`
  const { value, input, filtered } = useFilters(project)
  const { agents, loaded, nameOf: agentName } = useAgents(project)
  const list = useList('session.list', input, { kinds: ['session'] })
  const table = useRowKeys<HTMLTableElement>()
  const mayStart = may('agent.invoke') && agents.some(({ status }) => status === 'active')
  const create = (): void => setQuery({ new: '1' })
  const clear = (): void => setQuery(Object.fromEntries(FILTERS.map((name) => [name, ''])))
  return (
    <Page
      title={text.title}
      actions={
        <>
          <CopyCall name="session.list" input={input} />
          {mayStart && <PageAction label={text.create} keys="c" onRun={create} />}
        </>
      }
    >
      <div class="row session-filters">
        <SearchField label={text.search} value={value('q')} onValue={(q) => setQuery({ q })} />
        <SelectField
          label={text.agent}
          unlabelled
          value={value('agent')}
          choices={[
            { value: '', label: text.allAgents },
            ...agents.map(({ id, name }) => ({ value: id, label: name })),
          ]}
          onValue={(agent) => setQuery({ agent })}
        />
        <SelectField
          label={text.state}
          unlabelled
          value={value('state')}
          choices={STATES}
          onValue={(wanted) => setQuery({ state: wanted })}
        />
        <SelectField
          label={text.scope}
          unlabelled
          value={value('scope')}
          choices={SCOPES}
          onValue={(scope) => setQuery({ scope })}
        />
        <SelectField
          label={text.since}
          unlabelled
          value={value('since')}
          choices={PERIODS}
          onValue={(since) => setQuery({ since })}
        />
      </div>
      <Listed
        of={list}
        lines={6}
        empty={
          filtered ? (
            <EmptyCard icon="search" title={text.none}>
              <p>{text.noneHint}</p>
              <Button onClick={clear}>{text.clear}</Button>
            </EmptyCard>
          ) : (
            <EmptyCard icon="sessions" title={text.first}>
              <p>{loaded && agents.length === 0 ? text.firstAgent : text.firstHint}</p>
              {loaded && agents.length === 0 && may('project.edit') && (
                <LinkButton kind="primary" icon="agents" href={`${base}/agents?new=1`}>
                  {text.createAgent}
                </LinkButton>
              )}
            </EmptyCard>
          )
        }
      >
        {(items) => (
          <div class="table-frame">
            <table class="table" ref={table}>
              <thead>
                <tr>
                  <th scope="col">{text.name}</th>
                  <th scope="col">{text.agent}</th>
                  <th scope="col" class="number wide-cell">
                    {text.messages}
                  </th>
                  <th scope="col" class="number wide-cell" title={text.tokensHint}>
                    {text.tokens}
                  </th>
                  <th scope="col">{text.last}</th>
                </tr>
              </thead>
              <tbody>
                {items.map((session) => (
                  <Row
                    key={session.id}
                    session={session}
                    base={base}
                    agent={agentName(session.agent_id)}
                  />
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Listed>
      {currentUrl.value.query.get('new') === '1' && may('agent.invoke') && agents.length > 0 && (
        <NewSession
          project={project}
          agents={agents}
          agent={value('agent')}
          onClose={() => setQuery({ new: '' })}
        />
      )}
    </Page>
  )
}
