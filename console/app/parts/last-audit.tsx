/** When a service compared its own tables last, and what it found. */

import { path } from "../api/request.ts";
import type { LastAudit } from "../api/types.ts";
import { useGet } from "../api/use-get.ts";
import { useTexts } from "../texts/index.ts";
import { Empty, Foreign, Panel, Tag, Time } from "./basics.tsx";
import { Await } from "./loaded.tsx";
import { Table } from "./table.tsx";

export function LastAuditPanel({ service }: { readonly service: string }) {
  const t = useTexts();
  const audit = useGet<LastAudit>(path`/v1/admin/services/${service}/last-audit`, { everyMs: 60_000 });
  return (
    <Panel title={t.lastAudit}>
      <Await of={audit}>
        {({ finished_at, violations, findings }) =>
          finished_at ? (
            <>
              <p>
                <Time at={finished_at} />: {violations === 0 ? t.allHolds : <Tag>failed</Tag>}{" "}
                {violations > 0 && t.violations(violations)}
              </p>
              {findings.length > 0 && (
                <Table
                  label={t.lastAudit}
                  rows={findings}
                  keyOf={({ rule, about, detail }) => `${rule} ${about} ${detail}`}
                  columns={[
                    { head: t.rule, cell: ({ rule }) => rule },
                    { head: t.about, cell: ({ about }) => <Foreign>{about}</Foreign> },
                    { head: t.details, cell: ({ detail }) => <Foreign>{detail}</Foreign> },
                  ]}
                />
              )}
            </>
          ) : (
            <Empty>{t.notAudited(`todoke audit ${service}`)}</Empty>
          )
        }
      </Await>
    </Panel>
  );
}
