/** The effect that an event had when it was published. */
import type { SourceEventRecord } from '../../../protocol/events/rows.ts'
import { Badge } from '../../design/states.tsx'
import { eventsText as text } from './text.ts'

/** Shows how many triggers an event fired and how many waits it resumed. */
export const Effect = ({
  event: { fired_triggers, resumed_waits },
}: {
  readonly event: SourceEventRecord
}) => (
  <div class="row">
    {fired_triggers > 0 && <Badge tone="accent">{text.fired(fired_triggers)}</Badge>}
    {resumed_waits > 0 && <Badge tone="info">{text.resumed(resumed_waits)}</Badge>}
    {fired_triggers === 0 && resumed_waits === 0 && <span class="soft">{text.nothing}</span>}
  </div>
)
