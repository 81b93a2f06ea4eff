/** The published events of a project. */
import { useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { TableFrame } from '../../design/data-table.tsx'
import { TextField } from '../../design/field.tsx'
import { EmptyCard, Listed } from '../../design/listed.tsx'
import { Empty } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page, PageAction, type PageProps } from '../../shell/page.tsx'
import { rowLink, useRowKeys } from '../../shell/row-keys.ts'
import { may } from '../../shell/session.ts'
import { buildText } from '../build/text.ts'
import { Effect } from './effect.tsx'
import { PublishDialog } from './publish.tsx'
import { eventsText as text } from './text.ts'

export default function EventsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/events`
  const { query } = currentUrl.value
  const event_type = query.get('type') ?? ''
  const source_id = query.get('source') ?? ''
  const list = useList(
    'event.list',
    {
      project,
      limit: 50,
      ...(event_type !== '' && { event_type }),
      ...(source_id !== '' && { source_id }),
    },
    { kinds: ['event'] },
  )
  const { items } = list.state.value
  const mayPublish = may('runs.operate')
  const publish = (): void => setQuery({ new: '1' }, { push: true })
  const rows = useRowKeys<HTMLTableSectionElement>()
  const isFiltered = event_type !== '' || source_id !== ''
  const button = mayPublish && <PageAction label={text.publish} keys="c" onRun={publish} />
  return (
    <Page title={text.title} actions={button}>
      {(items.length > 0 || isFiltered) && (
        <div class="row filters">
          <TextField
            label={text.filterType}
            value={event_type}
            placeholder="order.paid"
            onValue={(type) => setQuery({ type })}
          />
          <TextField
            label={text.filterSource}
            value={source_id}
            onValue={(source) => setQuery({ source })}
          />
        </div>
      )}
      <Listed
        of={list}
        lines={6}
        empty={
          isFiltered ? (
            <Empty icon="search" title={text.notFound}>
              <Button onClick={() => setQuery({ type: '', source: '' })}>
                {buildText.clearSearch}
              </Button>
            </Empty>
          ) : (
            <EmptyCard icon="star" title={text.empty}>
              <p>{text.emptyHint}</p>
              {mayPublish && (
                <Button icon="plus" onClick={publish}>
                  {text.publish}
                </Button>
              )}
            </EmptyCard>
          )
        }
      >
        {(events) => (
          <TableFrame
            label={text.title}
            headings={[text.type, text.source, text.time, text.effect]}
          >
            <tbody ref={rows}>
              {events.map((event) => (
                <tr key={event.id}>
                  <td>
                    <a {...rowLink} class="mono user-text" href={`${base}/${event.id}`}>
                      {event.event_type}
                    </a>
                  </td>
                  <td class="user-text">
                    <span class="user-text">{event.source_id}</span>{' '}
                    <span class="soft small">{event.source_kind}</span>
                  </td>
                  <td>
                    <Time at={event.occurred_at} relative />
                  </td>
                  <td>
                    <Effect event={event} />
                  </td>
                </tr>
              ))}
            </tbody>
          </TableFrame>
        )}
      </Listed>
      {mayPublish && query.get('new') === '1' && (
        <PublishDialog project={project} onClose={() => setQuery({ new: '' })} />
      )}
    </Page>
  )
}
