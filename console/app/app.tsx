/** The frame of the console and its addresses. */
import { useEffect } from "preact/hooks";
import { Route, Switch } from "wouter-preact";
import { isRefusal } from "./api/request.ts";
import type { User } from "./api/types.ts";
import { useGet } from "./api/use-get.ts";
import { AuditLog } from "./pages/audit-log.tsx";
import { DeadBatchPage } from "./pages/dead-batch.tsx";
import { DeadGroupsPage } from "./pages/dead-groups.tsx";
import { DeadLetterPage } from "./pages/dead-letter.tsx";
import { DeadLettersPage } from "./pages/dead-letters.tsx";
import { Keys } from "./pages/keys.tsx";
import { Matchmaking } from "./pages/matchmaking.tsx";
import { OrderPage } from "./pages/order.tsx";
import { Orders } from "./pages/orders.tsx";
import { Overview } from "./pages/overview.tsx";
import { PlayerPage } from "./pages/player.tsx";
import { Players } from "./pages/players.tsx";
import { Points } from "./pages/points.tsx";
import { Why } from "./pages/why.tsx";
import { Layout } from "./parts/layout.tsx";
import { useErrorText } from "./parts/loaded.tsx";
import { rankOf, StaffContext } from "./parts/staff.ts";
import { useTexts } from "./texts/index.ts";

export function App({ onStaff }: { readonly onStaff: () => void }) {
  const { data: me, error } = useGet<User>("/v1/me");
  const isStaff = me !== undefined && rankOf(me) >= 0;
  useEffect(() => {
    if (isStaff) onStaff();
  }, [isStaff]);
  if (!me) return <Outside error={error} />;
  if (!isStaff) return <Outside name={me.display_name ?? me.user_id} />;
  return (
    <StaffContext.Provider value={me}>
      <Layout>
        <Switch>
          <Route path="/" component={Overview} />
          <Route path="/why" component={Why} />
          <Route path="/players" component={Players} />
          <Route path="/players/:id/:tab?">{({ id, tab }) => <PlayerPage key={id} id={id} tab={tab} />}</Route>
          <Route path="/dead" component={DeadGroupsPage} />
          <Route path="/dead/:service/batches/:id">
            {({ service, id }) => <DeadBatchPage key={id} service={service} id={id} />}
          </Route>
          <Route path="/dead/:service/:table">
            {({ service, table }) => <DeadLettersPage key={`${service}/${table}`} service={service} table={table} />}
          </Route>
          <Route path="/dead/:service/:table/:id">
            {({ service, table, id }) => <DeadLetterPage key={id} service={service} table={table} id={id} />}
          </Route>
          <Route path="/points" component={Points} />
          <Route path="/orders" component={Orders} />
          <Route path="/orders/:id">{({ id }) => <OrderPage key={id} id={id} />}</Route>
          <Route path="/matchmaking" component={Matchmaking} />
          <Route path="/audit" component={AuditLog} />
          <Route path="/keys" component={Keys} />
          <Route path="/logged-in" component={LoggedIn} />
          <Route component={NotHere} />
        </Switch>
      </Layout>
    </StaffContext.Provider>
  );
}

/** Before and without a role. */
function Outside({ error, name }: { readonly error?: Error | null; readonly name?: string }) {
  const t = useTexts();
  const text = useErrorText(error);
  const isLoggingIn = isRefusal(error, 401);
  return (
    <main class="outside">
      <h1>{t.product}</h1>
      {name !== undefined && (
        <p role="alert">
          <bdi>{name}</bdi>: {t.noRole}
        </p>
      )}
      {error && !isLoggingIn ? <p role="alert">{text}</p> : name === undefined && <p role="status">{t.loading}</p>}
      {name !== undefined && <a href="/">{t.toPlayerPage}</a>}
    </main>
  );
}

/** The end of a fresh login in a tab of its own. */
function LoggedIn() {
  const t = useTexts();
  useEffect(() => window.close(), []);
  return <p class="empty">{t.loggedInAgain}</p>;
}

function NotHere() {
  return <p class="empty">{useTexts().noPage}</p>;
}
