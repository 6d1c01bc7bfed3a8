%% The scenarios of world.go for Erlang/OTP. Reads "NUMBER\n", writes nanoseconds, for one benchmark named on the
%% command line. A message is a tuple with a binary of 32 bytes.
-module(bench).
-export([main/1, loop/1, once/2, victim/1, start_victim/2, init/1]).

main([Name]) ->
    io:setopts([binary]),
    Step = open(list_to_atom(Name)),
    serve(Step).

serve(Step) ->
    case io:get_line("") of
        eof -> halt(0);
        Line ->
            N = binary_to_integer(string:trim(Line)),
            T0 = erlang:monotonic_time(nanosecond),
            R = Step(N),
            T1 = erlang:monotonic_time(nanosecond),
            case R of
                {error, E} -> io:format("error ~p~n", [E]);
                {value, V} -> io:format("~.3f~n", [V / 1]);
                _ -> io:format("~b~n", [T1 - T0])
            end,
            erlang:garbage_collect(),
            serve(Step)
    end.

%% An actor: its state is {Left, Outstanding, Received, Next, Referee}.
actor(Referee) -> spawn(?MODULE, loop, [{0, 0, 0, none, Referee}]).

loop({Left, Out, Got, Next, Ref} = S) ->
    receive
        {ping, _, 0, _} -> Ref ! done, loop(S);
        {ping, From, N, B} -> From ! {ping, self(), N - 1, B}, loop(S);
        {six, _, {0, _, _, _, _, _}} -> Ref ! done, loop(S);
        {six, From, {N, A, B, C, D, E}} -> From ! {six, self(), {N - 1, A, B, C, D, E}}, loop(S);
        {fill, _, _} -> loop({Left, Out, Got + 1, Next, Ref});
        {last, From, B} -> From ! {ack, self(), B}, loop({Left, Out, Got + 1, Next, Ref});
        {ack, From, B} when Left > 0 -> fill(From, B), loop({Left - 1, Out, Got, Next, Ref});
        {ack, _, _} when Out =:= 1 -> Ref ! done, loop({Left, 0, Got, Next, Ref});
        {ack, _, _} -> loop({Left, Out - 1, Got, Next, Ref});
        {start, From, 1, B} -> fill(From, B), loop({Left, Out + 1, Got, Next, Ref});
        {start, From, N, B} -> fill(From, B), fill(From, B), loop({Left + N - 2, Out + 2, Got, Next, Ref});
        {next, P} -> loop({Left, Out, Got, P, Ref});
        {ring, 0, _} -> Ref ! done, loop(S);
        {ring, N, B} -> Next ! {ring, N - 1, B}, loop(S);
        {got, From} -> From ! {got, Got}, loop({Left, Out, 0, Next, Ref});
        {ask, From, R, B} -> From ! {R, B}, loop(S)
    end.

fill(To, B) -> fill(To, B, 63).
fill(To, B, 0) -> To ! {last, self(), B};
fill(To, B, N) -> To ! {fill, self(), B}, fill(To, B, N - 1).

wait(0) -> ok;
wait(N) -> receive done -> wait(N - 1) after 60000 -> {error, stuck} end.

got(Ps) -> lists:sum([begin P ! {got, self()}, receive {got, G} -> G end end || P <- Ps]).

body(N) -> binary:copy(<<7>>, N).

open('ping-pong') -> ping(body(32));
open('payload-1k') -> ping(body(1024));
open('payload-64k') -> ping(body(65536));
open('payload-1m') -> ping(body(1048576));
open(struct) ->
    A = actor(self()), B = actor(self()),
    fun(N) -> A ! {six, B, {N, <<"a name of some length">>, -1234, 12.5, true, [<<"red">>, <<"green">>]}}, wait(1) end;
open('fan-in') ->
    Sink = actor(self()), From = [actor(self()) || _ <- lists:seq(1, 8)], B = body(32),
    fun(N) ->
        [F ! {start, Sink, N div 512, B} || F <- From],
        case wait(8) of ok -> check(got([Sink]), N); E -> E end
    end;
open('fan-out') ->
    Source = actor(self()), To = [actor(self()) || _ <- lists:seq(1, 8)], B = body(32),
    fun(N) -> [Source ! {start, T, N div 512, B} || T <- To], until(To, 0, N) end;
open('pairs-1') -> pairs();
open('pairs-2') -> pairs();
open(ring) ->
    Ps = [actor(self()) || _ <- lists:seq(1, 10000)],
    [P ! {next, Q} || {P, Q} <- lists:zip(Ps, tl(Ps) ++ [hd(Ps)])],
    fun(N) -> hd(Ps) ! {ring, N, body(32)}, wait(1) end;
open(skynet) ->
    fun(N) ->
        Leaves = leaves(N),
        Me = self(),
        spawn(fun() -> skynet(Me, Leaves, 0) end),
        receive {sum, S} -> check(S, Leaves * (Leaves - 1) div 2) after 60000 -> {error, stuck} end
    end;
open(ask) ->
    P = actor(self()), B = body(32),
    fun(N) -> ask(P, B, N) end;
open('spawn-again') -> fun(N) -> respawn(N, false) end;
open('spawn-living') -> fun(N) -> respawn(N, true) end;
open('memory-awake') ->
    respawn(100, true),
    fun(N) -> M0 = rss(), respawn(N, true), {value, (rss() - M0) / 1} end;
open(crash) ->
    error_logger:tty(false), logger:set_primary_config(level, none),
    {ok, _} = supervisor:start_link({local, sup}, ?MODULE, [self()]),
    fun(N) -> crash(N) end;
open('crash-queue') ->
    error_logger:tty(false), logger:set_primary_config(level, none),
    {ok, _} = supervisor:start_link({local, sup}, ?MODULE, [self()]),
    %% What is queued when a process dies is lost: each crash is sent when the name is back.
    fun(N) -> crash(N) end.

ping(Body) ->
    A = actor(self()), B = actor(self()),
    fun(N) -> A ! {ping, B, N, Body}, wait(1) end.

pairs() ->
    Ps = [{actor(self()), actor(self())} || _ <- lists:seq(1, 64)], B = body(32),
    fun(N) -> [P ! {ping, Q, N div 64 - 1, B} || {P, Q} <- Ps], wait(64) end.

check(X, X) -> ok;
check(X, Y) -> {error, {X, instead_of, Y}}.

until(_, Sum, N) when Sum >= N -> check(Sum, N);
until(To, Sum, N) ->
    case wait(1) of ok -> until(To, Sum + got(To), N); E -> E end.

ask(_, _, 0) -> ok;
ask(P, B, N) ->
    R = make_ref(),
    P ! {ask, self(), R, B},
    receive {R, _} -> ask(P, B, N - 1) end.

leaves(Nodes) -> leaves(Nodes, 1).
leaves(Nodes, L) when L * 10 =< Nodes -> leaves(Nodes, L * 10);
leaves(_, L) -> L.

skynet(Parent, 1, Ordinal) -> Parent ! {sum, Ordinal};
skynet(Parent, N, Ordinal) ->
    Me = self(), D = N div 10,
    [spawn(fun() -> skynet(Me, D, Ordinal + I * D) end) || I <- lists:seq(0, 9)],
    Parent ! {sum, sums(10, 0)}.

sums(0, S) -> S;
sums(N, S) -> receive {sum, X} -> sums(N - 1, S + X) end.

once(From, Keep) ->
    receive {handle, _} -> From ! handled, if Keep -> receive never -> ok end; true -> ok end end.

respawn(0, _) -> ok;
respawn(N, Keep) ->
    P = spawn(?MODULE, once, [self(), Keep]),
    P ! {handle, body(32)},
    receive handled -> respawn(N - 1, Keep) end.

init([Referee]) ->
    {ok, {#{strategy => one_for_one, intensity => 100000000, period => 1},
          [#{id => victim, start => {?MODULE, start_victim, [Referee, x]}, restart => permanent}]}}.

start_victim(Referee, _) ->
    P = proc_lib:spawn_link(?MODULE, victim, [Referee]),
    register(victim, P),
    Referee ! started,
    {ok, P}.

victim(Referee) ->
    receive
        crash -> error(crash);
        handle -> Referee ! handled, victim(Referee)
    end.

crash(0) -> ok;
crash(N) ->
    flush(),
    victim ! crash,
    receive started -> ok end,
    victim ! handle,
    receive handled -> crash(N - 1) end.

flush() -> receive started -> flush() after 0 -> ok end.

rss() ->
    {ok, B} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = string:split(B, " ", all),
    binary_to_integer(Pages) * 4096.
