/** The page of a published event: its content, and the runs that it started. */
import { checkCustomType } from '../../../protocol/events/types.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyButton } from '../../design/copy.tsx'
import { Notice, Show } from '../../design/states.tsx'
import { designText } from '../../design/text.ts'
import { Time } from '../../design/time.tsx'
import { Tree } from '../../design/tree.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { RunTable } from '../build/run-table.tsx'
import { buildText } from '../build/text.ts'
import { Effect } from './effect.tsx'
import { PublishDialog } from './publish.tsx'
import { eventsText as text } from './text.ts'

export default function EventPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const id = params['id'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/events`
  const { state, reload } = useQuery('event.get', { project, id }, { kinds: ['event'] })
  const event = state.value.data
  // Only events with a type of the user's own can be published again.
  const mayRepeat =
    event !== undefined &&
    may('runs.operate') &&
    checkCustomType(event.event_type, 'event_type').length === 0
  return (
    <Page
      title={event?.event_type ?? id}
      crumbs={[{ label: text.title, href: base }]}
      actions={
        mayRepeat && (
          <Button icon="plus" onClick={() => setQuery({ new: '1' }, { push: true })}>
            {text.again}
          </Button>
        )
      }
    >
      <Show of={state.value} retry={reload}>
        {(known) => (
          <>
            <dl class="facts">
              <dt>{text.time}</dt>
              <dd>
                <Time at={known.occurred_at} />
              </dd>
              <dt>{text.source}</dt>
              <dd class="user-text">
                <span class="user-text">{known.source_id}</span>{' '}
                <span class="soft">({known.source_kind})</span>
              </dd>
              <dt>{text.effect}</dt>
              <dd>
                <Effect event={known} />
              </dd>
              {known.causation && (
                <>
                  <dt>{text.depth}</dt>
                  <dd>{known.causation.depth}</dd>
                </>
              )}
              <dt>{buildText.id}</dt>
              <dd class="row">
                <code class="user-text">{known.id}</code>
                <CopyButton value={known.id} label={designText.copyId} />
              </dd>
            </dl>
            <div class="pair">
              <section class="card">
                <header>
                  <h2>{text.payload}</h2>
                </header>
                <div class="body">
                  {'truncated' in known.event && <Notice>{text.truncated}</Notice>}
                  <Tree value={known.event} open={2} />
                </div>
              </section>
              <section class="card">
                <header>
                  <h2>{text.meta}</h2>
                </header>
                <div class="body">
                  <Tree value={known.meta} open={2} />
                </div>
              </section>
            </div>
            <section class="stack close">
              <h2>{text.started}</h2>
              <p class="soft">{text.startedHint}</p>
              <RunTable
                project={project}
                filter={{ source_event_id: known.id }}
                hint={text.noRuns}
              />
            </section>
            {mayRepeat && currentUrl.value.query.get('new') === '1' && (
              <PublishDialog project={project} from={known} onClose={() => setQuery({ new: '' })} />
            )}
          </>
        )}
      </Show>
    </Page>
  )
}
